<?php

/** The pgsql extension. */

declare(strict_types=1);

function pgsqlLink(bool $persistent): PgSql\Connection
{
    $parameters = 'host=127.0.0.1 port=' . port('PGSQL') . ' dbname=postgres user=postgres';

    return expect($persistent ? pg_pconnect($parameters) : pg_connect($parameters, PGSQL_CONNECT_FORCE_NEW), 'connect');
}

function pgsqlAsk(PgSql\Connection $link, Exchange $exchange, int $words): void
{
    for ($i = 0; $i < $words; $i++) {
        $query = "SELECT CAST($1 AS text), pg_sleep({$exchange->seconds()})";
        $result = expect(pg_query_params($link, $query, [$exchange->word()]), 'query');
        $exchange->hear(pg_fetch_result($result, 0, 0));
    }
}

return [
    'params' => static fn (Exchange $exchange) => pgsqlAsk(pgsqlLink(false), $exchange, 3),
    'persistent' => static fn (Exchange $exchange) => pgsqlAsk(pgsqlLink(true), $exchange, 3),
    'persistent_prepared' => static function (Exchange $exchange): void {
        $link = pgsqlLink(true);
        expect(pg_prepare($link, '', "SELECT CAST($1 AS text), pg_sleep({$exchange->seconds()})"), 'prepare');
        for ($i = 0; $i < 3; $i++) {
            $result = expect(pg_execute($link, '', [$exchange->word()]), 'execute');
            $exchange->hear(pg_fetch_result($result, 0, 0));
        }
    },
    'notices' => static function (Exchange $exchange): void {
        $link = pgsqlLink(true);
        for ($i = 0; $i < 2; $i++) {
            expect(pg_query($link, "DO $$ BEGIN RAISE NOTICE '{$exchange->token}'; END $$"), 'notice');
            pgsqlAsk($link, $exchange, 1);
        }
    },
    'async' => static function (Exchange $exchange): void {
        $link = pgsqlLink(true);
        for ($i = 0; $i < 2; $i++) {
            $query = "SELECT CAST($1 AS text), pg_sleep({$exchange->seconds()})";
            expect(pg_send_query_params($link, $query, [$exchange->word()]), 'send');
            while (pg_connection_busy($link)) {
                usleep(1000);
            }
            $result = expect(pg_get_result($link), 'result');
            if (pg_result_status($result) !== PGSQL_TUPLES_OK) {
                throw new RuntimeException((string) pg_result_error($result));
            }
            $word = pg_fetch_result($result, 0, 0);
            while (pg_get_result($link)) {
                // Until there is none.
            }
            $exchange->hear($word);
        }
    },
    'state' => static function (Exchange $exchange): void {
        $link = pgsqlLink(true);
        $user = expect(pg_query($link, "SELECT current_setting('app.user', true)"), 'query');
        $exchange->clean(pg_fetch_result($user, 0, 0));
        $exchange->clean(pg_transaction_status($link) === PGSQL_TRANSACTION_IDLE ? '' : 'transaction');
        expect(pg_query($link, "SELECT set_config('app.user', '{$exchange->token}', false)"), 'set_config');
        expect(pg_query($link, 'BEGIN'), 'begin');
        expect(pg_query_params($link, 'INSERT INTO ledger VALUES ($1)', [$exchange->token]), 'insert');
        pgsqlAsk($link, $exchange, 1);
        // The transaction is left open.
    },
    'shared' => static function (Exchange $exchange): void {
        static $link = null;
        try {
            $link ??= pgsqlLink(false);
            pgsqlAsk($link, $exchange, 3);
        } catch (RuntimeException $error) {
            $link = null;
            throw $error;
        }
    },
];
