<?php

/** A file that comes while others ask. */

declare(strict_types=1);

require_once __DIR__ . '/pdo_pgsql.php';

return [
    // Each line of the file is the request's token.
    'persistent' => static function (Exchange $exchange): void {
        $lines = explode("\n", trim(($exchange->upload)()));
        $whose = array_values(array_unique($lines));
        $exchange->hear($whose === [$exchange->token] ? $exchange->word() : implode('|', $whose));
        pgsqlTalk(pgsqlPdo(true, true), $exchange, 2);
    },
];
