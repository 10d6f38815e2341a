<?php

declare(strict_types=1);

namespace Surus\Cache;

use Surus\Internal\RedisServer;

/**
 * A cache in Redis (ext-redis), for all workers of all machines. Its values are unserialized into PHP objects: everyone
 * who can write to that Redis must be trusted.
 */
final class RedisCache extends Cache
{
    private readonly RedisServer $server;

    /**
     * @param string $prefix before each key; {@see RedisCache::clear()} removes only keys with it
     * @param float $timeout seconds, to connect and for each answer
     */
    public function __construct(
        string $host = '127.0.0.1',
        int $port = 6379,
        private readonly string $prefix = 'cache:',
        #[\SensitiveParameter] ?string $password = null,
        float $timeout = 2.0,
    ) {
        $this->server = new RedisServer($host, $port, $password, $timeout);
    }

    public function clear(): bool
    {
        return $this->ask(function (\Redis $redis): bool {
            $cursor = null;
            $pattern = addcslashes($this->prefix, '*?[]\\') . '*';
            do {
                $keys = $redis->scan($cursor, $pattern, 1000);
                if (is_array($keys) && $keys !== []) {
                    $redis->unlink($keys);
                }
            } while ($keys !== false && $cursor > 0);

            return true;
        });
    }

    protected function read(array $keys): array
    {
        $values = $this->ask(fn (\Redis $redis): mixed => $redis->mGet($this->prefixed($keys)));
        $found = [];
        foreach (is_array($values) ? $values : [] as $i => $value) {
            if (is_string($value)) {
                $found[$keys[$i]] = unserialize($value);
            }
        }

        return $found;
    }

    protected function write(array $values, ?int $seconds): bool
    {
        return $this->ask(function (\Redis $redis) use ($values, $seconds): bool {
            $pipe = $redis->multi(\Redis::PIPELINE);
            foreach ($values as $key => $value) {
                $seconds === null
                    ? $pipe->set($this->prefix . $key, serialize($value))
                    : $pipe->setex($this->prefix . $key, $seconds, serialize($value));
            }
            $answers = $pipe->exec();

            return is_array($answers) && !in_array(false, $answers, true);
        });
    }

    protected function remove(array $keys): bool
    {
        return $this->ask(fn (\Redis $redis): bool => $redis->unlink($this->prefixed($keys)) !== false);
    }

    /**
     * @template T
     *
     * @param \Closure(\Redis): T $what
     *
     * @return T
     */
    private function ask(\Closure $what): mixed
    {
        try {
            return $what($this->server->connect());
        } catch (\RedisException $error) {
            throw new CacheFailure($error->getMessage(), 0, $error);
        }
    }

    /**
     * @param list<string> $keys
     *
     * @return list<string>
     */
    private function prefixed(array $keys): array
    {
        return array_map(fn (string $key): string => $this->prefix . $key, $keys);
    }
}
