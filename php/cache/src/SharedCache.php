<?php

declare(strict_types=1);

namespace Surus\Cache;

use function Surus\Internal\cache_clear;
use function Surus\Internal\cache_read;
use function Surus\Internal\cache_remove;
use function Surus\Internal\cache_write;

/**
 * A cache in memory that all workers of the server share; it outlives reloads, and ends with the server. Its size is
 * the server's setting `shared_cache`: when it is full, the oldest values are removed.
 *
 * Values other than texts are serialized: each reader gets a separate object. A value larger than about a fiftieth of
 * the size is not stored: set() returns false.
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
        $this->prefix = $name . "\0";
    }

    public function clear(): bool
    {
        return cache_clear($this->prefix);
    }

    protected function read(array $keys): array
    {
        $now = $this->now();
        $found = [];
        foreach ($keys as $key) {
            $value = cache_read($this->prefix . $key, $now);
            if (is_string($value)) {
                $found[$key] = $value;
            } elseif ($value !== null && !self::restore($value[0], $found[$key])) {
                unset($found[$key]);
                cache_remove($this->prefix . $key);
            }
        }

        return $found;
    }

    protected function write(array $values, ?int $seconds): bool
    {
        $now = $this->now();
        // Some centuries are the same as no time limit.
        $until = $seconds === null || $seconds > intdiv(PHP_INT_MAX - $now, 1_000_000_000) ? PHP_INT_MAX : $now + $seconds * 1_000_000_000;
        $kept = true;
        foreach ($values as $key => $value) {
            $plain = is_string($value);
            $kept = cache_write($this->prefix . $key, $plain ? $value : serialize($value), !$plain, $until) && $kept;
        }

        return $kept;
    }

    protected function remove(array $keys): bool
    {
        $removed = true;
        foreach ($keys as $key) {
            $removed = cache_remove($this->prefix . $key) && $removed;
        }

        return $removed;
    }

    /** False for a value that another version of the code has written and this one cannot read. */
    private static function restore(string $serialized, mixed &$value): bool
    {
        try {
            $value = @unserialize($serialized);
        } catch (\Throwable) {
            return false;
        }

        return $value !== false || $serialized === serialize(false);
    }

    private function now(): int
    {
        return $this->clock === null ? hrtime(true) : ($this->clock)();
    }
}
