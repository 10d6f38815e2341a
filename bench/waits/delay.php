<?php

/** Requests that wait for so many milliseconds. */

declare(strict_types=1);

use Surus\App;

$app = new App();
$app->get('/delay/{milliseconds:int}', static function (int $milliseconds): string {
    usleep($milliseconds * 1000);

    return 'ok';
});

return $app;
