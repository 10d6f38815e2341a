<?php

/** Surus\Postgres: few connections, which all requests use at the same time. */

declare(strict_types=1);

use Surus\Postgres;
use Surus\Postgres\Queries;
use Surus\Postgres\Transaction;

use function Surus\all;

function native(): Postgres
{
    static $db = null;

    return $db ??= new Postgres('host=127.0.0.1 port=' . port('PGSQL') . ' dbname=postgres user=postgres', connections: 16);
}

function nativeTalk(Queries $db, Exchange $exchange, int $words): void
{
    for ($i = 0; $i < $words; $i++) {
        $exchange->hear($db->queryOne('SELECT $1::text AS word, pg_sleep($2)::text', [$exchange->word(), $exchange->seconds()])['word']);
    }
}

return [
    'query' => static fn (Exchange $exchange) => nativeTalk(native(), $exchange, 3),
    // These are quick, so that others are sent behind them.
    'quick' => static function (Exchange $exchange): void {
        for ($i = 0; $i < 4; $i++) {
            $exchange->hear(native()->queryOne('SELECT $1::text AS word', [$exchange->word()])['word']);
        }
    },
    'each' => static function (Exchange $exchange): void {
        $lists = array_map(static fn (): array => [$exchange->word()], range(1, 8));
        foreach (native()->queryEach('SELECT $1::text AS word', $lists) as $rows) {
            $exchange->hear($rows[0]['word']);
        }
    },
    'all' => static function (Exchange $exchange): void {
        $words = array_map(static fn (): string => $exchange->word(), range(1, 4));
        $rows = all(array_map(
            static fn (string $word) => static fn (): ?array => native()->queryOne('SELECT $1::text AS word, pg_sleep($2)::text', [$word, $exchange->seconds()]),
            $words,
        ));
        foreach ($rows as $row) {
            $exchange->hear($row['word']);
        }
    },
    // It is rolled back, however it ends.
    'transaction' => static function (Exchange $exchange): void {
        try {
            native()->transaction(static function (Transaction $tx) use ($exchange): void {
                $tx->execute('INSERT INTO ledger VALUES ($1)', [$exchange->token]);
                nativeTalk($tx, $exchange, 3);
                throw new DomainException('enough');
            });
        } catch (DomainException) {
        }
    },
];
