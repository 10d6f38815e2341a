<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\WebSocket;
use Surus\WebSocketClosed;

/**
 * A WebSocket and the object that handles it. Nothing waits for messages: the server calls this for what has happened, each time in
 * a fiber that ends afterwards, and never twice at a time.
 *
 * @internal csrc/app/conversation.c calls it
 */
final class Conversation
{
    public function __construct(private readonly WebSocket $socket, private readonly object $handler)
    {
    }

    /** @param list<mixed> $arguments */
    public function open(array $arguments): void
    {
        if (method_exists($this->handler, 'onOpen')) {
            $this->handler->onOpen(...$arguments);
        }
    }

    /** Messages have come. */
    public function messages(): void
    {
        try {
            while (($message = $this->socket->next()) !== null) {
                // @phpstan-ignore method.notFound (SocketClass has checked it)
                $this->handler->onMessage($this->socket, $message);
            }
        } catch (WebSocketClosed $closed) {
            $this->ignore($closed);
        }
    }

    /** It is over. */
    public function end(): void
    {
        try {
            if (method_exists($this->handler, 'onClose')) {
                $this->handler->onClose($this->socket);
            }
        } catch (WebSocketClosed $closed) {
            $this->ignore($closed);
        }
    }

    /** The client has gone while the handler had something to say. */
    private function ignore(WebSocketClosed $closed): void
    {
        if ($closed->socket !== $this->socket) {
            throw $closed;
        }
    }
}
