<?php

declare(strict_types=1);

use Surus\App;
use Surus\Http\Request;

require __DIR__ . '/calls.php';

$app = new App();
$app->get('/', static function (Request $request): array {
    $folder = (string) $request->query('folder');

    return $request->query('count') ? count_calls($folder) : measure_calls($folder);
});

return $app;
