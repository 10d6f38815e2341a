<?php

declare(strict_types=1);

require __DIR__ . '/../calls.php';

echo json_encode(measure_calls((string) $_GET['folder']));
