<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * A Redis server, by its address. Many requests run at a time: a connection belongs to one of them, and is kept for the
 * next one.
 *
 * @internal
 */
final class RedisServer
{
    public function __construct(
        private readonly string $host,
        private readonly int $port,
        #[\SensitiveParameter] private readonly ?string $password,
        private readonly float $timeout,
    ) {
    }

    /** @throws \RedisException */
    public function connect(): \Redis
    {
        $redis = new \Redis();
        $redis->pconnect($this->host, $this->port, $this->timeout, null, 0, $this->timeout);
        if ($this->password !== null) {
            $redis->auth($this->password);
        }

        return $redis;
    }
}
