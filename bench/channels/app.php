<?php

declare(strict_types=1);

use Surus\App;
use Surus\Channels;
use Surus\Http\Request;

$app = new App();
$app->get('/stream', static fn () => Channels::stream('news'));
$app->get('/publish', static function (Request $request): int {
    for ($i = 0; $i < (int) $request->query('times', '1'); $i++) {
        Channels::publish('news', str_repeat('x', 64));
    }

    return 204;
});

return $app;
