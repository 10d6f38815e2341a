<?php

declare(strict_types=1);

namespace Surus\Cache;

use Surus\Internal\SharedMemory;

use function Surus\Internal\store_clear;
use function Surus\Internal\store_delete;
use function Surus\Internal\store_get;
use function Surus\Internal\store_set;

/**
 * A cache in memory that all workers of the server share; it outlives reloads, and ends with the server. Its size is
 * the server's setting `shared_memory`: when it is full, values that were not read for long are removed.
 *
 * Values other than numbers, texts, booleans and null are serialized: each reader gets a separate object. A value larger than
 * about a fiftieth of the size is not stored: set() returns false.
 */
final class SharedCache extends Cache
{
    private readonly string $prefix;

    /**
     * @param string $name caches with different names share the memory, but no keys
     * @param ?\Closure(): int $clock nanoseconds, for tests
     */
    public function __construct(string $name = '', private readonly ?\Closure $clock = null)
    {
        if (strlen($name) > 64 || str_contains($name, "\0")) {
            throw new InvalidCacheArgument('The name of a cache has up to 64 bytes, and no NUL byte');
        }
        $this->prefix = SharedMemory::prefix('c', $name);
    }

    public function clear(): bool
    {
        return store_clear($this->prefix);
    }

    protected function read(array $keys): array
    {
        $now = $this->now();
        $found = [];
        foreach ($keys as $key) {
            $value = store_get($this->prefix . $key, $this, $now);
            if ($value !== $this) {
                $found[$key] = $value;
            }
        }

        return $found;
    }

    protected function write(array $values, ?int $seconds): bool
    {
        $now = $this->now();
        $kept = true;
        foreach ($values as $key => $value) {
            $kept = store_set($this->prefix . $key, $value, $seconds, SharedMemory::ALWAYS, null, $now) === SharedMemory::DONE && $kept;
        }

        return $kept;
    }

    protected function remove(array $keys): bool
    {
        $removed = true;
        foreach ($keys as $key) {
            $removed = store_delete($this->prefix . $key) <= SharedMemory::NOT && $removed;
        }

        return $removed;
    }

    private function now(): int
    {
        return $this->clock === null ? -1 : ($this->clock)();
    }
}
