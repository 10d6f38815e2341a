<?php

/**
 * A chat: rooms, who is there, and the last messages for those who come later.
 *
 *     surus serve examples/chat/app.php
 */

declare(strict_types=1);

use Psr\SimpleCache\CacheInterface;
use Surus\App;
use Surus\Attribute\Query;
use Surus\Http\HttpException;
use Surus\Http\Response;
use Surus\WebSocket;

use function Surus\publish;

/** Each WebSocket has an object of its own. */
final class Chat
{
    private const REMEMBERED = 20;

    private string $room = '';

    private string $name = '';

    public function __construct(private readonly CacheInterface $cache)
    {
    }

    public function onOpen(WebSocket $socket, string $room, #[Query] string $name): void
    {
        if (preg_match('/^[\p{L}\p{N} ]{1,30}$/uD', $name) !== 1) {
            $socket->close(4000, 'A name has 1 to 30 letters');

            return;
        }
        [$this->room, $this->name] = [$room, $name];
        $socket->subscribe("chat/$room");
        foreach ($this->cache->get("chat.$room", []) as $message) {
            $socket->send($message);
        }
        $this->say('joined');
    }

    public function onMessage(WebSocket $socket, string $message): void
    {
        if (strlen($message) > 2000) {
            $socket->close(4001, 'A message has 2000 bytes at most');

            return;
        }
        $this->say('says', $message);
    }

    public function onClose(WebSocket $socket): void
    {
        if ($this->name !== '') {
            $this->say('left');
        }
    }

    private function say(string $what, string $text = ''): void
    {
        $message = json_encode(['name' => $this->name, 'what' => $what, 'text' => $text], JSON_THROW_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE);
        publish("chat/$this->room", $message);
        if ($what === 'says') {
            // Another worker may do the same at this moment: then one of the two messages is not remembered.
            $last = [...$this->cache->get("chat.$this->room", []), $message];
            $this->cache->set("chat.$this->room", array_slice($last, -self::REMEMBERED), 3600);
        }
    }
}

$app = new App();
$app->get('/', static fn (): Response => Response::redirect('/hall'));
$app->get('/{room:slug}', static fn (): Response => Response::html((string) file_get_contents(__DIR__ . '/page.html')));
$app->websocket('/{room:slug}/socket', Chat::class, maxMessage: 10_000);

return $app;
