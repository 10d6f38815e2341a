<?php

/** PDO with PostgreSQL. */

declare(strict_types=1);

function pgsqlPdo(bool $persistent, bool $emulate): PDO
{
    return new PDO('pgsql:host=127.0.0.1;port=' . port('PGSQL') . ';dbname=postgres;user=postgres', options: [
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
        PDO::ATTR_PERSISTENT => $persistent,
        PDO::ATTR_EMULATE_PREPARES => $emulate,
    ]);
}

function pgsqlTalk(PDO $db, Exchange $exchange, int $words): void
{
    for ($i = 0; $i < $words; $i++) {
        $statement = $db->prepare("SELECT CAST(? AS text), pg_sleep({$exchange->seconds()})");
        $statement->execute([$exchange->word()]);
        $exchange->hear($statement->fetchColumn());
    }
}

/** A pool as applications write it: checked when it hands out, put back in a finally block. */
final class PgsqlPool
{
    /** @var list<PDO> */
    private array $free = [];

    public function with(Closure $work): void
    {
        $db = $this->get();
        try {
            $work($db);
        } finally {
            if ($db->inTransaction()) {
                $db->rollBack();
            }
            $this->free[] = $db;
        }
    }

    private function get(): PDO
    {
        while ($db = array_pop($this->free)) {
            try {
                $db->query('SELECT 1');
                return $db;
            } catch (PDOException) {
                // The next one, or a new one.
            }
        }

        return pgsqlPdo(false, true);
    }
}

return [
    'emulated' => static fn (Exchange $exchange) => pgsqlTalk(pgsqlPdo(false, true), $exchange, 3),
    'prepared' => static fn (Exchange $exchange) => pgsqlTalk(pgsqlPdo(false, false), $exchange, 3),
    'persistent' => static fn (Exchange $exchange) => pgsqlTalk(pgsqlPdo(true, true), $exchange, 3),
    'persistent_prepared' => static function (Exchange $exchange): void {
        $db = pgsqlPdo(true, false);
        // What somebody else has begun must not be committed here.
        $db->beginTransaction();
        pgsqlTalk($db, $exchange, 3);
        $db->commit();
    },
    'transaction' => static function (Exchange $exchange): void {
        $db = pgsqlPdo(true, true);
        $exchange->clean($db->inTransaction() ? 'transaction' : '');
        $db->beginTransaction();
        $db->prepare('INSERT INTO ledger VALUES (?)')->execute([$exchange->token]);
        pgsqlTalk($db, $exchange, 2);
        $db->rollBack();
    },
    'state' => static function (Exchange $exchange): void {
        $db = pgsqlPdo(true, true);
        $exchange->clean($db->query("SELECT current_setting('app.user', true)")->fetchColumn());
        $exchange->clean($db->query("SELECT count(*) FROM pg_class WHERE relname = 'mine' AND
            relnamespace = pg_my_temp_schema()")->fetchColumn());
        $exchange->clean($db->query("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND
            pid = pg_backend_pid()")->fetchColumn());
        $db->query("SELECT set_config('app.user', '{$exchange->token}', false)");
        $db->exec('CREATE TEMPORARY TABLE mine (token text)');
        $db->query('SELECT pg_advisory_lock_shared(7)');
        pgsqlTalk($db, $exchange, 1);
        $exchange->step();
    },
    'copy' => static function (Exchange $exchange): void {
        $db = pgsqlPdo(true, true);
        $db->exec('CREATE TEMPORARY TABLE IF NOT EXISTS copied (token text)');
        $db->exec('TRUNCATE copied');
        $word = $exchange->word();
        expect($db->pgsqlCopyFromArray('copied', array_fill(0, 50, "{$word}\n")), 'COPY FROM');
        $rows = expect($db->pgsqlCopyToArray('copied'), 'COPY TO');
        $exchange->hear(count($rows) === 50 ? implode('|', array_unique(array_map(trim(...), $rows))) : count($rows));
        pgsqlTalk($db, $exchange, 1);
    },
    'pooled' => static function (Exchange $exchange): void {
        static $pool = null;
        $pool ??= new PgsqlPool();
        $pool->with(static function (PDO $db) use ($exchange): void {
            $db->beginTransaction();
            $db->prepare('INSERT INTO ledger VALUES (?)')->execute([$exchange->token]);
            pgsqlTalk($db, $exchange, 3);
            $db->rollBack();
        });
    },
    'shared' => static function (Exchange $exchange): void {
        static $db = null;
        try {
            $db ??= pgsqlPdo(false, true);
            pgsqlTalk($db, $exchange, 3);
        } catch (PDOException $error) {
            $db = null;
            throw $error;
        }
    },
];
