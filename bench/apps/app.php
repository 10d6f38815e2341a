<?php

declare(strict_types=1);

// The benchmark's application in coroutine mode: the same answers as the limit, and apps/classic/index.php.

use Surus\App;
use Surus\Http\Request;
use Surus\Http\Response;

define('KILOBYTE', str_repeat('0123456789abcdef', 64));

$app = new App();
$app->get('/plaintext', fn () => new Response('Hello, World!', 200, ['content-type' => 'text/plain']));
$app->get('/json', fn () => ['message' => 'Hello, World!']);
$app->get('/users/{id}', fn (string $id) => ['id' => $id]);
$app->get('/stream', fn () => new Response((function () {
    for ($i = 0; $i < 64; $i++) {
        yield KILOBYTE;
    }
})(), 200, ['content-type' => 'text/plain']));
$app->post('/upload', function (Request $request): Response {
    $body = $request->openBody();
    $length = 0;
    while (!feof($body)) {
        $length += strlen((string) fread($body, 65536));
    }

    return new Response((string) $length, 200, ['content-type' => 'text/plain']);
});

return $app;
