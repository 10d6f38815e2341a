<?php

declare(strict_types=1);

namespace Surus\Session;

/** Sessions in Redis (ext-redis). Each request that has a session connects anew or takes a persistent connection. */
final class RedisStore implements Store
{
    public function __construct(
        private readonly string $host = '127.0.0.1',
        private readonly int $port = 6379,
        private readonly string $prefix = 'session:',
        #[\SensitiveParameter] private readonly ?string $password = null,
        private readonly float $timeout = 2.0,
    ) {
    }

    public function read(string $id): ?string
    {
        $data = $this->connect()->get($this->prefix . $id);

        return is_string($data) ? $data : null;
    }

    public function write(string $id, string $data, int $seconds): void
    {
        $this->connect()->setex($this->prefix . $id, $seconds, $data);
    }

    public function delete(string $id): void
    {
        $this->connect()->del($this->prefix . $id);
    }

    /** Requests run side by side: a connection belongs to one of them at a time. */
    private function connect(): \Redis
    {
        $redis = new \Redis();
        $redis->pconnect($this->host, $this->port, $this->timeout);
        if ($this->password !== null) {
            $redis->auth($this->password);
        }

        return $redis;
    }
}
