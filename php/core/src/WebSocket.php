<?php

declare(strict_types=1);

namespace Surus;

use Surus\Http\Request;
use Surus\Internal\ChannelResult;

use function Surus\Internal\at_caller;
use function Surus\Internal\channel_join;
use function Surus\Internal\channel_subscribe;
use function Surus\Internal\websocket_close;
use function Surus\Internal\websocket_converse;
use function Surus\Internal\websocket_end;
use function Surus\Internal\websocket_next;
use function Surus\Internal\websocket_receive;
use function Surus\Internal\websocket_send;

/**
 * A WebSocket of a client: the messages that it sends, in a loop, and what is sent to it.
 *
 *     $app->websocket('/echo', function (WebSocket $socket): void {
 *         foreach ($socket as $message) {
 *             $socket->send($message);
 *         }
 *     });
 *
 * Other requests wait for nothing while this one waits for a message. Any code of the application may send to it, also that of
 * other requests, as long as it is open.
 *
 * @implements \IteratorAggregate<int, string>
 */
final class WebSocket implements \IteratorAggregate
{
    private bool $binary = false;

    /** @internal {@see App::websocket()} makes it */
    public function __construct(
        private readonly int $number,
        private readonly Request $request,
        private readonly string $protocol,
    ) {
    }

    /**
     * Waits for the next message of the client. The loop `foreach ($socket as $message)` does the same until the end.
     *
     * @param ?float $timeout seconds; null waits as long as the client is there
     *
     * @return ?string null: no more will come
     *
     * @throws TimeoutException if none has come in time; the next call may receive it
     */
    public function receive(?float $timeout = null): ?string
    {
        $message = websocket_receive($this->number, $timeout, $this->binary);
        if ($message === true) {
            throw at_caller(new TimeoutException("No message has come within $timeout s"));
        }

        return $message === false ? null : $message;
    }

    /** @internal from now on the server tells the object what happens */
    public function converse(Internal\Conversation $conversation): void
    {
        websocket_converse($this->number, $conversation, $this->request);
    }

    /** @internal a message that has come; null: none has */
    public function next(): ?string
    {
        return websocket_next($this->number, $this->binary);
    }

    /** Whether the message that was received last is binary, and no text. */
    public function isBinary(): bool
    {
        return $this->binary;
    }

    /** @return \Generator<int, string> messages, until the end */
    public function getIterator(): \Generator
    {
        while (($message = $this->receive()) !== null) {
            yield $message;
        }
    }

    /**
     * Sends a text. Waits while the client has not read what was sent before.
     *
     * @throws WebSocketClosed if it is over
     * @throws \ValueError if it is not UTF-8
     */
    public function send(string $text): void
    {
        $this->pass($text, false);
    }

    /**
     * Sends bytes. Waits while the client has not read what was sent before.
     *
     * @throws WebSocketClosed if it is over
     */
    public function sendBinary(string $bytes): void
    {
        $this->pass($bytes, true);
    }

    /**
     * Ends it, after what was sent before. What the client has sent and nobody has received is dropped. Does nothing if it is over.
     * A handler that returns closes with 1000, one that throws with 1011.
     *
     * @param int $code 1000 to 1003, 1007 to 1014, or one of your own from 3000 to 4999
     * @param string $reason for people who look for errors; at most 123 bytes
     */
    public function close(int $code = 1000, string $reason = ''): void
    {
        try {
            websocket_close($this->number, $code, $reason);
        } catch (\ValueError $error) {
            throw at_caller($error);
        }
    }

    /**
     * From now on the client is sent what is published on this channel ({@see Channels::publish()}), without the handler. Nobody waits
     * for a client that reads slowly: when 1 MiB waits for it, it is closed with 1013.
     *
     * @param string $channel 1 to 200 bytes of UTF-8; at most 1000 of them
     * @param ?string $since a position in the history of the channel: the client is sent what was published since then first
     *
     * @return bool whether the client has missed nothing since $since; false if that is not known, because the history does not go
     *     back so far. Without $since it is true
     *
     * @throws WebSocketClosed if it is over
     * @throws ChannelException if the history cannot be read
     * @throws \ValueError if the name is none, or there are too many
     */
    public function subscribe(string $channel, ?string $since = null): bool
    {
        $result = channel_subscribe($this->number, $channel, true, $since ?? '');
        $this->check($result, $channel);

        return $result !== ChannelResult::MISSED;
    }

    /** No longer. */
    public function unsubscribe(string $channel): void
    {
        channel_subscribe($this->number, $channel, false, '');
    }

    /**
     * Makes the client a member of a channel, until it leaves or is gone: {@see Channels::members()}. It need not have subscribed. Several
     * connections with the same name are one member, with what the first of them has said of itself.
     *
     * @param string $member its name in this channel, 1 to 200 bytes of UTF-8
     * @param mixed $info what others may know of it; at most 4 KiB as JSON
     *
     * @throws WebSocketClosed if it is over
     * @throws \JsonException if $info has no JSON form
     */
    public function join(string $channel, string $member, mixed $info = null): void
    {
        $said = $info === null ? '' : json_encode($info, JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES);
        // An empty name would leave.
        $result = $member === '' ? ChannelResult::NAME : channel_join($this->number, $channel, $member, $said);
        $this->check($result, $channel);
    }

    /** It is no member of this channel any more. */
    public function leave(string $channel): void
    {
        channel_join($this->number, $channel, '', '');
    }

    private function check(int $result, string $channel): void
    {
        if ($result === ChannelResult::OVER) {
            throw at_caller(new WebSocketClosed($this));
        }
        ChannelResult::check($result, $channel);
    }

    /** Whether messages can be sent. */
    public function isOpen(): bool
    {
        return websocket_end($this->number) === null;
    }

    /**
     * How it has ended: the code of the side that has closed it first, 1005 if the client has given none, 1006 if the client is
     * gone, 1001 and 1012 if the server ends or loads new code. Null while it is open.
     */
    public function closeCode(): ?int
    {
        return websocket_end($this->number)[0] ?? null;
    }

    /** What the side that has closed it first has said; "" if nothing. */
    public function closeReason(): string
    {
        return websocket_end($this->number)[1] ?? '';
    }

    private function pass(string $message, bool $binary): void
    {
        try {
            $sent = websocket_send($this->number, $message, $binary);
        } catch (\ValueError $error) {
            throw at_caller($error);
        }
        if (!$sent) {
            throw at_caller(new WebSocketClosed($this));
        }
    }

    /** The request that has become this WebSocket. */
    public function request(): Request
    {
        return $this->request;
    }

    /** The protocol that was agreed upon (`protocols:` of {@see App::websocket()}); "" if none was. */
    public function protocol(): string
    {
        return $this->protocol;
    }
}
