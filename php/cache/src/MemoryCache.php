<?php

declare(strict_types=1);

namespace Surus\Cache;

/**
 * A cache in the memory of the worker, for all of its requests; after a reload it is empty. When it is full, the least
 * recently used values are removed.
 */
final class MemoryCache extends Cache
{
    /** @var array<array-key, array{mixed, bool, float, int}> value, is serialized, expiry, bytes; oldest use first */
    private array $items = [];

    private int $bytes = 0;

    /**
     * @param int $maxItems maximum number of values
     * @param int $maxBytes approximate maximum size of all values
     * @param ?\Closure(): float $clock seconds, for tests
     */
    public function __construct(
        private readonly int $maxItems = 10_000,
        private readonly int $maxBytes = 16_777_216,
        private readonly ?\Closure $clock = null,
    ) {
        if ($maxItems < 1 || $maxBytes < 1) {
            throw new \InvalidArgumentException('A cache has room for something');
        }
    }

    public function clear(): bool
    {
        $this->items = [];
        $this->bytes = 0;

        return true;
    }

    protected function read(array $keys): array
    {
        $found = [];
        foreach ($keys as $key) {
            $item = $this->items[$key] ?? null;
            if ($item === null) {
                continue;
            }
            if ($item[2] <= $this->now()) {
                $this->remove([$key]);
                continue;
            }
            unset($this->items[$key]);
            $this->items[$key] = $item;
            $found[$key] = $item[1] ? unserialize($item[0]) : $item[0];
        }

        return $found;
    }

    protected function write(array $values, ?int $seconds): bool
    {
        $until = $seconds === null ? INF : $this->now() + $seconds;
        $fits = true;
        foreach ($values as $key => $value) {
            $this->remove([(string) $key]);
            $size = self::size($value);
            // An object would be shared with the caller: serialize it.
            $serialized = $size === null;
            if ($serialized) {
                $value = serialize($value);
                $size = 64 + strlen($value);
            }
            if ($size > $this->maxBytes) {
                $fits = false;
                continue;
            }
            $this->items[$key] = [$value, $serialized, $until, $size];
            $this->bytes += $size;
            while (count($this->items) > $this->maxItems || $this->bytes > $this->maxBytes) {
                $this->remove([(string) array_key_first($this->items)]);
            }
        }

        return $fits;
    }

    protected function remove(array $keys): bool
    {
        foreach ($keys as $key) {
            $this->bytes -= $this->items[$key][3] ?? 0;
            unset($this->items[$key]);
        }

        return true;
    }

    private function now(): float
    {
        return $this->clock === null ? microtime(true) : ($this->clock)();
    }

    /** The approximate size in bytes; null if it contains an object. */
    private static function size(mixed $value): ?int
    {
        if (is_string($value)) {
            return 64 + strlen($value);
        }
        if (!is_array($value)) {
            return is_object($value) || is_resource($value) ? null : 32;
        }
        $size = 96;
        foreach ($value as $key => $item) {
            $of = self::size($item);
            if ($of === null) {
                return null;
            }
            $size += $of + (is_string($key) ? strlen($key) + 32 : 16);
        }

        return $size;
    }
}
