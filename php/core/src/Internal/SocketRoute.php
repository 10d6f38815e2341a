<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\BootError;
use Surus\Http\HttpException;
use Surus\Http\Request;
use Surus\Http\Response;
use Surus\Schema\Operation;
use Surus\WebSocket;
use Surus\WebSocketClosed;

/**
 * The handler of a WebSocket's route: answers the handshake (RFC 6455, 4.2), and calls the application's handler when the
 * response has gone through all middleware.
 *
 * @internal
 */
final class SocketRoute
{
    /* RFC 6455, 1.3. */
    private const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

    /** @var list<string> in lower case */
    private readonly array $origins;

    /**
     * @param array<string> $origins besides that of the site itself; "*" is all of them
     * @param array<string> $protocols the preferred one first
     * @param int $maxMessage bytes
     *
     * @throws BootError
     */
    public function __construct(
        public readonly mixed $handler,
        array $origins,
        private readonly array $protocols,
        private readonly int $maxMessage,
    ) {
        foreach ($origins as $origin) {
            if (preg_match('~^(\*|null|[a-z][a-z0-9+.-]*://[^/?#\s]+)$~Di', $origin) !== 1) {
                throw new BootError(Origin::caller() . ": \"$origin\" is no origin: it is like https://www.example.com, or * for all of them");
            }
        }
        foreach ($protocols as $protocol) {
            if (preg_match('/^[A-Za-z0-9!#$%&\'*+.^_`|~-]+$/D', $protocol) !== 1) {
                throw new BootError(Origin::caller() . ": \"$protocol\" is no name of a protocol of a WebSocket");
            }
        }
        if ($maxMessage < 1) {
            throw new BootError(Origin::caller() . ": the largest message of a WebSocket has at least one byte: it is $maxMessage");
        }
        $this->origins = array_map(strtolower(...), array_values($origins));
    }

    /** Never called: {@see Planner} calls around(). */
    #[Operation(hidden: true)]
    public function __invoke(): never
    {
        throw new \LogicException('A WebSocket without a plan');
    }

    /**
     * What the server calls.
     *
     * @param \Closure(Request, WebSocket, list<mixed>): mixed $run
     * @param list<int> $positions those of the arguments that are the WebSocket
     *
     * @return \Closure(Request, mixed...): Response
     */
    public function around(\Closure $run, array $positions): \Closure
    {
        return function (Request $request, mixed ...$arguments) use ($run, $positions): Response {
            $key = $this->key($request);
            $this->checkOrigin($request);
            $protocol = $this->agreed($request);
            $extensions = websocket_extensions($request->headers()['sec-websocket-extensions'] ?? '');
            $headers = [
                'upgrade' => 'websocket',
                'sec-websocket-accept' => base64_encode(sha1($key . self::GUID, true)),
            ] + ($protocol === '' ? [] : ['sec-websocket-protocol' => $protocol])
                + ($extensions === '' ? [] : ['sec-websocket-extensions' => $extensions]);

            return new Response($this->conversation($request, $protocol, $run, array_values($arguments), $positions), 101, $headers);
        };
    }

    /**
     * A body that sends nothing: the server takes it when it sends the response.
     *
     * @param \Closure(Request, WebSocket, list<mixed>): mixed $run
     * @param list<mixed> $arguments
     * @param list<int> $positions
     *
     * @return \Generator<int, string>
     */
    private function conversation(Request $request, string $protocol, \Closure $run, array $arguments, array $positions): \Generator
    {
        $socket = new WebSocket(websocket_accept($this->maxMessage), $request, $protocol);
        foreach ($positions as $position) {
            $arguments[$position] = $socket;
        }
        try {
            $run($request, $socket, $arguments);
        } catch (WebSocketClosed $closed) {
            // The client has gone while the handler had something to say.
            if ($closed->socket !== $socket) {
                throw $closed;
            }
        }

        yield from [];
    }

    /** @throws HttpException if the request is no handshake */
    private function key(Request $request): string
    {
        $asks = $request->method() === 'GET' && in_array('websocket', self::items($request, 'upgrade'), true)
            && in_array('upgrade', self::items($request, 'connection'), true);
        if (!$asks) {
            throw new HttpException(426, 'This is the address of a WebSocket', ['upgrade' => 'websocket']);
        }
        if ($request->header('sec-websocket-version') !== '13') {
            throw new HttpException(426, 'The version of the WebSocket is not 13', ['upgrade' => 'websocket', 'sec-websocket-version' => '13']);
        }
        $key = (string) $request->header('sec-websocket-key');
        if (strlen((string) base64_decode($key, true)) !== 16 || strlen($key) !== 24) {
            throw new HttpException(400, 'Sec-WebSocket-Key is not 16 bytes in base64');
        }

        return $key;
    }

    /**
     * Browsers let any site open a WebSocket to this one, with its visitor's cookies; but they say which site it is.
     *
     * @throws HttpException if it is another site
     */
    private function checkOrigin(Request $request): void
    {
        $origin = $request->header('origin');
        if ($origin === null || array_intersect(['*', strtolower($origin)], $this->origins) !== []) {
            return;
        }
        $own = preg_match('~^https?://([^/?#]+)$~Di', $origin, $match) === 1 && $request->host() !== ''
            && self::plain($match[1]) === self::plain($request->host());
        if (!$own) {
            throw new HttpException(403, "A WebSocket from another site ($origin)");
        }
    }

    /** Without the port that is the scheme's. */
    private static function plain(string $authority): string
    {
        return (string) preg_replace('/:(80|443)$/D', '', strtolower($authority));
    }

    private function agreed(Request $request): string
    {
        $offered = array_map(trim(...), explode(',', $request->headers()['sec-websocket-protocol'] ?? ''));

        return array_values(array_intersect($this->protocols, $offered))[0] ?? '';
    }

    /** @return list<string> of a header, in lower case */
    private static function items(Request $request, string $name): array
    {
        return array_map(trim(...), explode(',', strtolower($request->headers()[$name] ?? '')));
    }
}
