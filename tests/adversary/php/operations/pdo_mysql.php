<?php

/** PDO with MariaDB. */

declare(strict_types=1);

function mysqlPdo(bool $persistent, bool $emulate, bool $buffered = true): PDO
{
    return new PDO('mysql:host=127.0.0.1;port=' . port('MYSQL') . ';dbname=adversary', 'surus', 'elephant', [
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
        PDO::ATTR_PERSISTENT => $persistent,
        PDO::ATTR_EMULATE_PREPARES => $emulate,
        PDO::MYSQL_ATTR_USE_BUFFERED_QUERY => $buffered,
    ]);
}

function mysqlTalk(PDO $db, Exchange $exchange, int $words): void
{
    for ($i = 0; $i < $words; $i++) {
        $statement = $db->prepare("SELECT CONCAT(?, ''), SLEEP({$exchange->seconds()})");
        $statement->execute([$exchange->word()]);
        $word = $statement->fetchColumn();
        $statement->closeCursor();
        $exchange->hear($word);
    }
}

return [
    'emulated' => static fn (Exchange $exchange) => mysqlTalk(mysqlPdo(false, true), $exchange, 3),
    'prepared' => static fn (Exchange $exchange) => mysqlTalk(mysqlPdo(false, false), $exchange, 3),
    'persistent' => static function (Exchange $exchange): void {
        $db = mysqlPdo(true, true);
        $db->beginTransaction();
        mysqlTalk($db, $exchange, 3);
        $db->commit();
    },
    'persistent_prepared' => static fn (Exchange $exchange) => mysqlTalk(mysqlPdo(true, false), $exchange, 3),
    'unbuffered' => static function (Exchange $exchange): void {
        $db = mysqlPdo(true, true, false);
        $word = $exchange->word();
        $statement = $db->query("SELECT '{$word}' FROM seq_1_to_200");
        $exchange->hear($statement->fetchColumn());
        unset($statement);
        mysqlTalk($db, $exchange, 1);
        $statement = $db->query("SELECT '{$exchange->word()}' FROM seq_1_to_200");
        $exchange->hear($statement->fetchColumn());
        // The rest is not read.
    },
    'state' => static function (Exchange $exchange): void {
        $db = mysqlPdo(true, true);
        $exchange->clean($db->query('SELECT @app_user')->fetchColumn());
        $exchange->clean($db->query('SELECT @@in_transaction')->fetchColumn());
        try {
            $left = $db->query('SELECT token FROM mine')->fetchColumn();
        } catch (PDOException $error) {
            if (($error->errorInfo[1] ?? 0) !== 1146) {
                throw $error;
            }
            $left = '';
        }
        $exchange->clean($left);
        $db->exec("SET @app_user = '{$exchange->token}'");
        $db->exec("CREATE TEMPORARY TABLE mine AS SELECT '{$exchange->token}' AS token");
        $db->exec('BEGIN');
        $db->exec("INSERT INTO ledger VALUES ('{$exchange->token}')");
        mysqlTalk($db, $exchange, 1);
        // All of it is left behind.
    },
    'shared' => static function (Exchange $exchange): void {
        static $db = null;
        try {
            $db ??= mysqlPdo(false, true);
            mysqlTalk($db, $exchange, 3);
        } catch (PDOException $error) {
            $db = null;
            throw $error;
        }
    },
];
