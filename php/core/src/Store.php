<?php

declare(strict_types=1);

namespace Surus;

use Surus\Internal\SharedMemory;

use function Surus\Internal\store_clear;
use function Surus\Internal\store_delete;
use function Surus\Internal\store_get;
use function Surus\Internal\store_set;
use function Surus\Internal\store_step;
use function Surus\Internal\store_touch;

/**
 * Values that all workers of the server share, in every mode; they outlive requests and reloads, and end with the server.
 *
 * Values are anything that can be serialized: who reads one gets a copy. When the memory (the setting `shared_memory`) is full,
 * those that were not read for long are removed; numbers that increment() has made are not. Nothing waits for anybody: each
 * operation is one step that others see as a whole, and a worker that is killed leaves the old value or the new one.
 *
 * Times to live are seconds, more than 0; null is no limit.
 */
final class Store
{
    private readonly string $prefix;

    /** @param string $name stores with different names share the memory, but no keys */
    public function __construct(string $name = '')
    {
        $this->prefix = SharedMemory::prefix('s', $name);
    }

    public function get(string $key, mixed $default = null): mixed
    {
        return store_get($this->prefix . $key, $default);
    }

    public function has(string $key): bool
    {
        return store_get($this->prefix . $key, $this) !== $this;
    }

    /**
     * @param iterable<string> $keys
     *
     * @return array<array-key, mixed> by key
     */
    public function getMultiple(iterable $keys, mixed $default = null): array
    {
        $values = [];
        foreach ($keys as $key) {
            $values[$key] = store_get($this->prefix . $key, $default);
        }

        return $values;
    }

    /** @throws StoreException if the value is too large */
    public function set(string $key, mixed $value, null|int|float $ttl = null): void
    {
        SharedMemory::done(store_set($this->prefix . $key, $value, SharedMemory::seconds($ttl)), $key);
    }

    /** Stores a value if the key has none; whether it did. */
    public function add(string $key, mixed $value, null|int|float $ttl = null): bool
    {
        return $this->setIf(SharedMemory::IF_ABSENT, $key, $value, $ttl);
    }

    /** Stores a value if the key has one; whether it did. */
    public function replace(string $key, mixed $value, null|int|float $ttl = null): bool
    {
        return $this->setIf(SharedMemory::IF_PRESENT, $key, $value, $ttl);
    }

    /** Stores a value if that of the key is the expected one, of the same type; whether it did. */
    public function compareAndSwap(string $key, mixed $expected, mixed $value, null|int|float $ttl = null): bool
    {
        return $this->setIf(SharedMemory::IF_SAME, $key, $value, $ttl, $expected);
    }

    /** Whether there was one. */
    public function delete(string $key): bool
    {
        return SharedMemory::done(store_delete($this->prefix . $key), $key);
    }

    /** Removes all values of this store. */
    public function clear(): void
    {
        if (!store_clear($this->prefix)) {
            SharedMemory::done(SharedMemory::UNAVAILABLE, '');
        }
    }

    /** A new time to live, from now on; whether there is a value. */
    public function touch(string $key, null|int|float $ttl): bool
    {
        return SharedMemory::done(store_touch($this->prefix . $key, SharedMemory::seconds($ttl)), $key);
    }

    /**
     * Adds to an integer, and returns the sum. It is never removed to make room.
     *
     * @param int $initial what is added to if there is none
     * @param null|int|float $ttl of a new one: an existing one keeps its time
     *
     * @throws StoreException if the value is no integer, the sum too large, or there is no room
     */
    public function increment(string $key, int $by = 1, int $initial = 0, null|int|float $ttl = null): int
    {
        $sum = 0;
        SharedMemory::done(store_step($this->prefix . $key, $by, $initial, SharedMemory::seconds($ttl), true, $sum), $key);

        return $sum;
    }

    /** Subtracts from an integer, and returns the difference. */
    public function decrement(string $key, int $by = 1, int $initial = 0, null|int|float $ttl = null): int
    {
        return $this->increment($key, -$by, $initial, $ttl);
    }

    private function setIf(int $condition, string $key, mixed $value, null|int|float $ttl, mixed $expected = null): bool
    {
        return SharedMemory::done(store_set($this->prefix . $key, $value, SharedMemory::seconds($ttl), $condition, $expected), $key);
    }
}
