<?php

declare(strict_types=1);

// How much was uploaded: a file of a form, or the body as it is.

$length = 0;
if ($_FILES !== []) {
    $length = filesize($_FILES['file']['tmp_name']);
} else {
    $body = fopen('php://input', 'rb');
    while (!feof($body)) {
        $length += strlen((string) fread($body, 65536));
    }
}

header('content-type: text/plain');
header('content-length: ' . strlen((string) $length));
echo $length;
