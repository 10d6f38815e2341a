<?php

/** The memcached extension. */

declare(strict_types=1);

function memcached(?string $pool): Memcached
{
    $memcached = new Memcached($pool);
    if ($memcached->getServerList() === []) {
        $memcached->setOption(Memcached::OPT_CONNECT_TIMEOUT, 5000);
        $memcached->setOption(Memcached::OPT_POLL_TIMEOUT, 10_000);
        $memcached->setOption(Memcached::OPT_RETRY_TIMEOUT, 0);
        $memcached->setOption(Memcached::OPT_SERVER_FAILURE_LIMIT, 1_000_000);
        $memcached->addServer('127.0.0.1', port('MEMCACHED'));
    }

    return $memcached;
}

function memcachedTalk(Memcached $memcached, Exchange $exchange, int $words): void
{
    for ($i = 0; $i < $words; $i++) {
        $word = $exchange->word();
        if (!$memcached->set($word, $word, 30)) {
            throw new RuntimeException('set: ' . $memcached->getResultMessage());
        }
        $value = $memcached->get($word);
        if ($value === false) {
            throw new RuntimeException('get: ' . $memcached->getResultMessage());
        }
        $exchange->hear($value);
    }
}

return [
    'plain' => static fn (Exchange $exchange) => memcachedTalk(memcached(null), $exchange, 3),
    'persistent' => static fn (Exchange $exchange) => memcachedTalk(memcached('pool'), $exchange, 3),
    'many' => static function (Exchange $exchange): void {
        $memcached = memcached('pool');
        $words = [$exchange->word(), $exchange->word(), $exchange->word()];
        if (!$memcached->setMulti(array_combine($words, $words), 30)) {
            throw new RuntimeException('setMulti: ' . $memcached->getResultMessage());
        }
        $exchange->step();
        $values = $memcached->getMulti($words);
        if ($values === false || count($values) !== 3) {
            throw new RuntimeException('getMulti: ' . $memcached->getResultMessage());
        }
        foreach ($words as $word) {
            $exchange->hear($values[$word] ?? null);
        }
    },
    'shared' => static function (Exchange $exchange): void {
        static $memcached = null;
        $memcached ??= memcached(null);
        memcachedTalk($memcached, $exchange, 3);
    },
];
