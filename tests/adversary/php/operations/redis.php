<?php

/** phpredis. */

declare(strict_types=1);

function redis(bool $persistent): Redis
{
    $redis = new Redis();
    $connect = $persistent ? 'pconnect' : 'connect';
    expect($redis->$connect('127.0.0.1', port('REDIS'), 10.0), $connect);

    return $redis;
}

function redisTalk(Redis $redis, Exchange $exchange, int $words): void
{
    for ($i = 0; $i < $words; $i++) {
        $exchange->hear(expect($redis->echo($exchange->word()), 'echo'));
    }
}

return [
    'plain' => static fn (Exchange $exchange) => redisTalk(redis(false), $exchange, 4),
    'persistent' => static fn (Exchange $exchange) => redisTalk(redis(true), $exchange, 4),
    'values' => static function (Exchange $exchange): void {
        $redis = redis(true);
        $word = $exchange->word();
        expect($redis->set("own:{$exchange->token}", $word, 30), 'set');
        $exchange->hear(expect($redis->get("own:{$exchange->token}"), 'get'));
        $word = $exchange->word();
        expect($redis->hMSet("hash:{$exchange->token}", ['a' => $word]), 'hMSet');
        $exchange->hear(expect($redis->hGetAll("hash:{$exchange->token}"), 'hGetAll')['a'] ?? null);
        expect($redis->del("hash:{$exchange->token}"), 'del');
    },
    'blocking' => static function (Exchange $exchange): void {
        $redis = redis(true);
        $redis->rawCommand('BLPOP', "never:{$exchange->token}", '0.02');
        redisTalk($redis, $exchange, 2);
    },
    'pipeline' => static function (Exchange $exchange): void {
        $redis = redis(true);
        for ($i = 0; $i < 2; $i++) {
            $words = [$exchange->word(), $exchange->word()];
            $replies = $redis->pipeline()->echo($words[0])->ping()->echo($words[1])->exec();
            // A connection that breaks ends the pipeline: what comes back is of one command then.
            if (!is_array($replies) || count($replies) !== 3 || in_array(false, $replies, true)) {
                throw new RuntimeException('exec failed');
            }
            $exchange->hear($replies[0]);
            $exchange->hear($replies[2]);
        }
    },
    'multi' => static function (Exchange $exchange): void {
        $redis = redis(true);
        expect($redis->watch("watched:{$exchange->token}"), 'watch');
        expect($redis->multi(), 'multi');
        $redis->echo($exchange->word());
        $exchange->step();
        $redis->echo($exchange->word());
        $replies = $redis->exec();
        if (!is_array($replies) || count($replies) !== 2 || in_array(false, $replies, true)) {
            throw new RuntimeException('exec failed');
        }
        $exchange->hear($replies[0]);
        $exchange->hear($replies[1]);
    },
    'database' => static function (Exchange $exchange): void {
        $redis = redis(true);
        // Where the last one has been, it has left its name.
        $exchange->clean($redis->get('here'));
        expect($redis->select(1 + crc32($exchange->token) % 14), 'select');
        expect($redis->set('here', $exchange->token), 'set');
        $exchange->step();
        redisTalk($redis, $exchange, 2);
    },
    'shared' => static function (Exchange $exchange): void {
        static $redis = null;
        try {
            $redis ??= redis(false);
            redisTalk($redis, $exchange, 3);
        } catch (RedisException | RuntimeException $error) {
            $redis = null;
            throw $error;
        }
    },
];
