<?php

/** mysqli with MariaDB. */

declare(strict_types=1);

function mysqliLink(bool $persistent): mysqli
{
    return new mysqli(($persistent ? 'p:' : '') . '127.0.0.1', 'surus', 'elephant', 'adversary', port('MYSQL'));
}

function mysqliTalk(mysqli $link, Exchange $exchange, int $words): void
{
    for ($i = 0; $i < $words; $i++) {
        $result = $link->query("SELECT '{$exchange->word()}', SLEEP({$exchange->seconds()})");
        $exchange->hear($result->fetch_row()[0] ?? null);
    }
}

function mysqliPrepared(mysqli $link, Exchange $exchange): void
{
    $statement = $link->prepare("SELECT CONCAT(?, ''), SLEEP({$exchange->seconds()})");
    for ($i = 0; $i < 3; $i++) {
        $statement->execute([$exchange->word()]);
        $exchange->hear($statement->get_result()->fetch_row()[0] ?? null);
    }
}

return [
    'plain' => static fn (Exchange $exchange) => mysqliTalk(mysqliLink(false), $exchange, 3),
    'prepared' => static fn (Exchange $exchange) => mysqliPrepared(mysqliLink(false), $exchange),
    'persistent' => static fn (Exchange $exchange) => mysqliTalk(mysqliLink(true), $exchange, 3),
    'persistent_prepared' => static fn (Exchange $exchange) => mysqliPrepared(mysqliLink(true), $exchange),
    'async' => static function (Exchange $exchange): void {
        $link = mysqliLink(true);
        for ($i = 0; $i < 2; $i++) {
            $link->query("SELECT '{$exchange->word()}', SLEEP({$exchange->seconds()})", MYSQLI_ASYNC);
            $read = $error = $reject = [$link];
            if (!mysqli_poll($read, $error, $reject, 10)) {
                throw new RuntimeException('nothing comes');
            }
            $exchange->hear($link->reap_async_query()->fetch_row()[0] ?? null);
        }
    },
    'multi' => static function (Exchange $exchange): void {
        $link = mysqliLink(true);
        $link->multi_query("SELECT '{$exchange->word()}'; DO SLEEP({$exchange->seconds()}); SELECT '{$exchange->word()}'");
        do {
            $result = $link->store_result();
            if ($result) {
                $exchange->hear($result->fetch_row()[0] ?? null);
            }
        } while ($link->more_results() && $link->next_result());
    },
    'state' => static function (Exchange $exchange): void {
        $link = mysqliLink(true);
        $exchange->clean($link->query('SELECT @app_user')->fetch_row()[0]);
        $exchange->clean($link->query('SELECT @@in_transaction')->fetch_row()[0]);
        $link->query("SET @app_user = '{$exchange->token}'");
        $link->begin_transaction();
        $link->query("INSERT INTO ledger VALUES ('{$exchange->token}')");
        mysqliTalk($link, $exchange, 1);
        // The transaction is left open.
    },
    'shared' => static function (Exchange $exchange): void {
        static $link = null;
        try {
            $link ??= mysqliLink(false);
            mysqliTalk($link, $exchange, 3);
        } catch (mysqli_sql_exception $error) {
            $link = null;
            throw $error;
        }
    },
];
