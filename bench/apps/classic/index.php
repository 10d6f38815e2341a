<?php

declare(strict_types=1);

// The answers of app.php for servers that start PHP anew for each request (php-fpm, mod_php): no framework, so that
// what is measured is the server.

$path = strtok($_SERVER['REQUEST_URI'], '?');

if ($path === '/plaintext') {
    header('content-type: text/plain');
    echo 'Hello, World!';
} elseif ($path === '/json') {
    header('content-type: application/json');
    echo json_encode(['message' => 'Hello, World!']);
} elseif (preg_match('#^/users/([^/]+)$#', $path, $match) === 1) {
    header('content-type: application/json');
    echo json_encode(['id' => $match[1]]);
} else {
    http_response_code(404);
}
