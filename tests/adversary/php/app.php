<?php

declare(strict_types=1);

use Surus\Http\Request;
use Surus\Http\Response;

require __DIR__ . '/answer.php';
operations();

return function (Request $request): Response {
    $query = [];
    foreach (['operation', 'token', 'delay', 'end', 'at'] as $name) {
        $query[$name] = (string) $request->query($name);
    }
    [$status, $body] = answer($query, static fn (): string => $request->file('file')->contents());

    return new Response($body, $status, ['content-type' => 'text/plain']);
};
