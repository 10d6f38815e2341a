<?php

declare(strict_types=1);

require __DIR__ . '/answer.php';

[$status, $body] = answer($_GET);
http_response_code($status);
header('Content-Type: text/plain');
echo $body;
