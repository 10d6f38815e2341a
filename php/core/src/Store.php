<?php

declare(strict_types=1);

namespace Surus;

use Surus\Internal\SharedMemory;
use Surus\Internal\Tagged;

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
        $value = store_get($this->prefix . $key, $default);

        return $value instanceof Tagged ? $this->untag($value, $default) : $value;
    }

    public function has(string $key): bool
    {
        return $this->get($key, $this) !== $this;
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
            $values[$key] = $this->get($key, $default);
        }

        return $values;
    }

    /** @throws StoreException if the value is too large */
    public function set(string $key, mixed $value, null|int|float $ttl = null): void
    {
        SharedMemory::done(store_set($this->prefix . $key, $value, SharedMemory::seconds($ttl)), $key);
    }

    /**
     * Stores a value that counts until one of these tags is invalidated.
     *
     * The tags have to be those of everything that the value is made of, and it has to be made after the last change of that: if it may
     * change meanwhile, use {@see Store::remember()}.
     *
     * @param list<string> $tags
     */
    public function setTagged(string $key, mixed $value, array $tags, null|int|float $ttl = null): void
    {
        $this->set($key, Tagged::value($value, Tagged::now($tags)), $ttl);
    }

    /** No value with one of these tags counts any more, in any store; nor one that remember() is making now. */
    public function invalidateTags(string ...$tags): void
    {
        foreach ($tags as $tag) {
            Tagged::invalidate($tag);
        }
    }

    /**
     * The value; if there is none, it is made and stored. Of many requests that miss it at the same time, in all workers, one makes
     * it, and the others wait for that.
     *
     * @param \Closure(): mixed $make
     * @param list<string> $tags as {@see Store::setTagged()}: if one is invalidated while the value is made, it does not count
     * @param float $wait seconds to wait for another request; then it is made here, too
     */
    public function remember(string $key, null|int|float $ttl, \Closure $make, array $tags = [], float $wait = 10.0): mixed
    {
        $found = $this->get($key, $this);
        if ($found !== $this) {
            return $found;
        }
        try {
            $lock = Lock::acquire("remember\0" . $this->prefix . $key, $wait);
        } catch (LockTimeout $ends) {
            throw $ends;
        } catch (\RuntimeException | \LogicException) {
            // There is no lock for it, or nothing can wait here: it is made here, too.
            $lock = null;
        }
        try {
            $found = $this->get($key, $this);
            if ($found !== $this) {
                return $found;
            }
            $now = Tagged::now($tags);
            $value = $make();
            $this->set($key, Tagged::value($value, $now), $ttl);

            return $value;
        } finally {
            $lock?->release();
        }
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
        $key = $this->prefix . $key;
        $seconds = SharedMemory::seconds($ttl);
        $found = store_get($key);
        if ($found instanceof Tagged && !$found->counts()) {
            // It counts as absent: what took its place meanwhile does not.
            if ($condition !== SharedMemory::IF_ABSENT) {
                return false;
            }
            [$condition, $expected] = [SharedMemory::IF_SAME, $found];
        } elseif ($found instanceof Tagged && $condition === SharedMemory::IF_SAME) {
            if (serialize($found->value) !== serialize($expected)) {
                return false;
            }
            $expected = $found;
        }

        return SharedMemory::done(store_set($key, $value, $seconds, $condition, $expected), $key);
    }

    private function untag(Tagged $value, mixed $default): mixed
    {
        return $value->counts() ? $value->value : $default;
    }
}
