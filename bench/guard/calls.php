<?php

/** What a call costs, in nanoseconds of CPU time of this process: the same loops in each way to run PHP. */

declare(strict_types=1);

function cpu_ns(): int
{
    $usage = getrusage();

    return 1000 * (1_000_000 * ($usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']) + $usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']);
}

/** @return array<string, array{int, Closure(int): void}> how often, and the loop */
function calls(string $folder): array
{
    $sqlite = new PDO('sqlite::memory:');
    $statement = $sqlite->prepare('select 1');
    file_put_contents("{$folder}/lines." . getmypid(), str_repeat("a line of some forty bytes, as in a log\n", 1000));
    $file = fopen("{$folder}/lines." . getmypid(), 'r');
    unlink("{$folder}/lines." . getmypid());
    socket_create_pair(AF_UNIX, SOCK_STREAM, 0, $pair);
    $calls = [
        'no-op method (PDO::errorCode)' => [400_000, static function (int $count) use ($sqlite): void {
            for ($i = 0; $i < $count; $i++) {
                $sqlite->errorCode();
            }
        }],
        'SQLite execute + fetchColumn' => [60_000, static function (int $count) use ($statement): void {
            for ($i = 0; $i < $count; $i++) {
                $statement->execute();
                $statement->fetchColumn();
            }
        }],
        'SQLite query + fetchColumn' => [30_000, static function (int $count) use ($sqlite): void {
            for ($i = 0; $i < $count; $i++) {
                $sqlite->query('select 1')->fetchColumn();
            }
        }],
        'fgets of a local file' => [200_000, static function (int $count) use ($file): void {
            for ($i = 0; $i < $count; $i++) {
                fgets($file) === false && rewind($file);
            }
        }],
        'socket_write + socket_read, pair' => [20_000, static function (int $count) use ($pair): void {
            for ($i = 0; $i < $count; $i++) {
                socket_write($pair[0], 'hello');
                socket_read($pair[1], 5);
            }
        }],
    ];
    if (is_dir("{$folder}/data")) {
        $pgsql = new PDO("pgsql:host={$folder};dbname=postgres;user=postgres");
        $calls['PDO_pgsql query select 1'] = [2_000, static function (int $count) use ($pgsql): void {
            for ($i = 0; $i < $count; $i++) {
                $pgsql->query('select 1')->fetchColumn();
            }
        }];
    }
    if (file_exists("{$folder}/redis")) {
        $redis = new Redis();
        $redis->connect("{$folder}/redis");
        $redis->set('key', 'value');
        $calls['Redis::get'] = [4_000, static function (int $count) use ($redis): void {
            for ($i = 0; $i < $count; $i++) {
                $redis->get('key');
            }
        }];
    }

    return $calls;
}

/** @return array<string, float> */
function measure_calls(string $folder): array
{
    $found = [];
    foreach (calls($folder) as $name => [$count, $loop]) {
        $loop(intdiv($count, 10));
        $before = cpu_ns();
        $loop($count);
        $found[$name] = (cpu_ns() - $before) / $count;
    }

    return $found;
}

/**
 * For bench/guard/instructions, below which all is slow.
 *
 * @return array<string, int> how often each call was made between two of getrusage()
 */
function count_calls(string $folder): array
{
    $found = [];
    foreach (calls($folder) as $name => [$count, $loop]) {
        $count = min($count, 5_000);
        $loop($count);
        getrusage();
        $loop($count);
        getrusage();
        $found[$name] = $count;
    }

    return $found;
}

if (PHP_SAPI === 'cli' && isset($argv[1]) && realpath($argv[0]) === __FILE__) {
    echo json_encode(measure_calls($argv[1]));
}
