<?php

declare(strict_types=1);

use Surus\App;
use Surus\Http\Request;

require __DIR__ . '/calls.php';

$app = new App();
$app->get('/', static fn (Request $request): array => measure_calls((string) $request->query('folder')));

return $app;
