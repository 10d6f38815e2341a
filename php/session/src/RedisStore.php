<?php

declare(strict_types=1);

namespace Surus\Session;

use Surus\Internal\RedisServer;

/** Sessions in Redis (ext-redis). */
final class RedisStore implements Store
{
    private readonly RedisServer $server;

    /**
     * @param string $prefix before each id
     * @param float $timeout seconds, to connect and for each answer
     */
    public function __construct(
        string $host = '127.0.0.1',
        int $port = 6379,
        private readonly string $prefix = 'session:',
        #[\SensitiveParameter] ?string $password = null,
        float $timeout = 2.0,
    ) {
        $this->server = new RedisServer($host, $port, $password, $timeout);
    }

    public function read(string $id): ?string
    {
        $data = $this->server->connect()->get($this->prefix . $id);

        return is_string($data) ? $data : null;
    }

    public function write(string $id, string $data, int $seconds): void
    {
        $this->server->connect()->setex($this->prefix . $id, $seconds, $data);
    }

    public function update(string $id, string $data, int $seconds): bool
    {
        return (bool) $this->server->connect()->set($this->prefix . $id, $data, ['xx', 'ex' => $seconds]);
    }

    public function delete(string $id): void
    {
        $this->server->connect()->del($this->prefix . $id);
    }
}
