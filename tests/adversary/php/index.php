<?php

declare(strict_types=1);

require __DIR__ . '/answer.php';

[$status, $body] = answer($_GET, static fn (): string => (string) file_get_contents($_FILES['file']['tmp_name']));
http_response_code($status);
header('Content-Type: text/plain');
echo $body;
