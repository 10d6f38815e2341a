<?php

declare(strict_types=1);

use Surus\App;
use Surus\WebSocket;

use function Surus\publish;

/** PHP is entered for each message; there is no fiber between them. */
final class EchoClass
{
    public function onMessage(WebSocket $socket, string $message): void
    {
        $socket->send($message);
    }
}

/** The first message of a client is "in"; any other one is for all. */
final class Room
{
    public function onOpen(WebSocket $socket): void
    {
        $socket->subscribe('room');
    }

    public function onMessage(WebSocket $socket, string $message): void
    {
        publish('room', $message);
    }
}

$app = new App();
$app->websocket('/echo', EchoClass::class);
$app->websocket('/loop', static function (WebSocket $socket): void {
    foreach ($socket as $message) {
        $socket->send($message);
    }
});
$app->websocket('/room', Room::class);

return $app;
