<?php

/** Surus\Pool, used as it is meant, and as it is not. */

declare(strict_types=1);

use Surus\Pool;

require_once __DIR__ . '/pdo_pgsql.php';

/** @return Pool<PDO> */
function pdoPool(): Pool
{
    static $pool = null;

    return $pool ??= new Pool(static fn (): PDO => pgsqlPdo(false, true), max: 8, timeout: 30);
}

/** @return Pool<Redis> that has room for requests which take two */
function redisPool(): Pool
{
    static $pool = null;

    return $pool ??= new Pool(static function (): Redis {
        $redis = new Redis();
        expect($redis->connect('127.0.0.1', port('REDIS'), 10), 'connect');

        return $redis;
    }, max: 300, timeout: 30);
}

return [
    'transaction' => static fn (Exchange $exchange) => pdoPool()->use(
        static function (PDO $db) use ($exchange): void {
            $db->beginTransaction();
            $db->prepare('INSERT INTO ledger VALUES (?)')->execute([$exchange->token]);
            pgsqlTalk($db, $exchange, 3);
            $db->rollBack();
        },
    ),
    // It is put back to its beginning after each use: what the last one has left open is nobody's.
    'left_open' => static function (Exchange $exchange): void {
        pdoPool()->use(static function (PDO $db) use ($exchange): void {
            $exchange->clean($db->inTransaction() ? 'transaction' : '');
            $exchange->clean($db->query("SELECT current_setting('app.user', true)")->fetchColumn());
            $db->query("SELECT set_config('app.user', '{$exchange->token}', false)");
            $db->beginTransaction();
            $db->prepare('INSERT INTO ledger VALUES (?)')->execute([$exchange->token]);
            pgsqlTalk($db, $exchange, 1);
        });
    },
    'nested' => static fn (Exchange $exchange) => redisPool()->use(
        static fn (Redis $outer) => redisPool()->use(static function (Redis $inner) use ($exchange, $outer): void {
            $words = [$exchange->word(), $exchange->word(), $exchange->word()];
            $outer->set($words[0], $words[0], ['px' => 10000]);
            $exchange->hear($inner->get($words[0]));
            $exchange->hear($outer->eval('return ARGV[1]', [$words[1]]));
            $exchange->hear($inner->eval('return ARGV[1]', [$words[2]]));
        }),
    ),
    // The handle is kept, and used when it is somebody else's.
    'kept' => static function (Exchange $exchange): void {
        $kept = pdoPool()->use(static function (PDO $db) use ($exchange): PDO {
            pgsqlTalk($db, $exchange, 1);

            return $db;
        });
        pgsqlTalk($kept, $exchange, 2);
    },
    // The rows are fetched when the connection is somebody else's.
    'statement' => static function (Exchange $exchange): void {
        $statement = pdoPool()->use(static function (PDO $db) use ($exchange): PDOStatement {
            $statement = $db->prepare("SELECT CAST(? AS text), pg_sleep({$exchange->seconds()})");
            $statement->execute([$exchange->word()]);

            return $statement;
        });
        usleep($exchange->delay * 500);
        $exchange->hear($statement->fetchColumn());
    },
];
