<?php

declare(strict_types=1);

namespace Surus\Session;

use Psr\SimpleCache\CacheInterface;

/**
 * Sessions in any PSR-16 cache. A cache that drops entries when it is full ends sessions. PSR-16 has no atomic write of
 * existing entries only: a logout can be undone by another request that writes at the same moment.
 */
final class CacheStore implements Store
{
    /** @param string $prefix before each id */
    public function __construct(private readonly CacheInterface $cache, private readonly string $prefix = 'session.')
    {
    }

    public function read(string $id): ?string
    {
        $data = $this->cache->get($this->prefix . $id);

        return is_string($data) ? $data : null;
    }

    public function write(string $id, string $data, int $seconds): void
    {
        if (!$this->cache->set($this->prefix . $id, $data, $seconds)) {
            throw new \RuntimeException('The session cannot be written to its cache');
        }
    }

    public function update(string $id, string $data, int $seconds): bool
    {
        if (!$this->cache->has($this->prefix . $id)) {
            return false;
        }
        $this->write($id, $data, $seconds);

        return true;
    }

    public function delete(string $id): void
    {
        $this->cache->delete($this->prefix . $id);
    }
}
