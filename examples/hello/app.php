<?php

declare(strict_types=1);

use Surus\App;

$app = new App();

$app->get('/', fn () => 'Hello, World!');

$app->get('/json', fn () => ['message' => 'Hello, World!']);

$app->get('/users/{id}', fn (string $id) => ['id' => $id]);

return $app;
