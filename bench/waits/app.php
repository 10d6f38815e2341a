<?php

/** One wait for a server in each route: what its system calls are is counted by `syscalls`. */

declare(strict_types=1);

use Surus\App;
use Surus\Pool;

$folder = WAITS_FOLDER;
$pgsql = "pgsql:host={$folder};dbname=postgres;user=postgres";
$mysql = "mysql:unix_socket={$folder}/mariadb;dbname=test";
$persistent = [PDO::ATTR_PERSISTENT => true];
$emulated = [PDO::ATTR_EMULATE_PREPARES => true];
$pool = new Pool(static fn (): PDO => new PDO($pgsql, null, null, $emulated), max: 16);

/** @return array{id: int} */
function one(PDO $database): array
{
    $statement = $database->prepare('select 41 + ?');
    $statement->execute([1]);

    return ['id' => (int) $statement->fetchColumn()];
}

$app = new App();
$app->get('/none', static fn (): array => ['id' => 42]);
$app->get('/pgsql', static fn (): array => one(new PDO($pgsql, null, null, $persistent + $emulated)));
$app->get('/pgsql-prepared', static fn (): array => one(new PDO($pgsql, null, null, $persistent)));
$app->get('/pgsql-pool', static fn (): array => $pool->use(one(...)));
$app->get('/mysql', static fn (): array => one(new PDO($mysql, 'root', '', $persistent)));
$app->get('/redis', static function () use ($folder): array {
    $redis = new Redis();
    $redis->pconnect("{$folder}/redis");

    return ['id' => (int) ($redis->get('id') ?: 42)];
});
$app->get('/sleep', static function (): array {
    usleep(1000);

    return ['id' => 42];
});

return $app;
