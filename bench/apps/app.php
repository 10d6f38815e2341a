<?php

declare(strict_types=1);

// The benchmark's application in coroutine mode: the same three answers as the limit and apps/classic/index.php.

use Surus\App;
use Surus\Http\Response;

$app = new App();
$app->get('/plaintext', fn () => new Response('Hello, World!', 200, ['content-type' => 'text/plain']));
$app->get('/json', fn () => ['message' => 'Hello, World!']);
$app->get('/users/{id}', fn (string $id) => ['id' => $id]);

return $app;
