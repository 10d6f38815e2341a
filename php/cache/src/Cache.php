<?php

declare(strict_types=1);

namespace Surus\Cache;

use Psr\SimpleCache\CacheInterface;

/**
 * The common part of the caches (PSR-16). Keys are texts without any of `{}()/\@:`, of up to 512 bytes.
 *
 * Parameters have no types, so that it is compatible with every version of psr/simple-cache.
 */
abstract class Cache implements CacheInterface
{
    /**
     * @param list<string> $keys
     *
     * @return array<array-key, mixed> the values of existing keys
     */
    abstract protected function read(array $keys): array;

    /**
     * @param array<array-key, mixed> $values
     * @param ?int $seconds more than 0; null: no time limit
     */
    abstract protected function write(array $values, ?int $seconds): bool;

    /** @param list<string> $keys */
    abstract protected function remove(array $keys): bool;

    /**
     * The cached value; if there is none, it is made now.
     *
     * @param \Closure(): mixed $make
     */
    public function remember(string $key, null|int|\DateInterval $ttl, \Closure $make): mixed
    {
        $found = $this->read([self::key($key)]);
        if ($found !== []) {
            return reset($found);
        }
        $value = $make();
        $this->set($key, $value, $ttl);

        return $value;
    }

    public function get($key, $default = null): mixed
    {
        $found = $this->read([self::key($key)]);

        return $found === [] ? $default : reset($found);
    }

    public function set($key, $value, $ttl = null): bool
    {
        return $this->store([self::key($key) => $value], $ttl);
    }

    public function delete($key): bool
    {
        return $this->remove([self::key($key)]);
    }

    public function has($key): bool
    {
        return $this->read([self::key($key)]) !== [];
    }

    public function getMultiple($keys, $default = null): iterable
    {
        $keys = self::keys($keys);
        $found = $keys === [] ? [] : $this->read($keys);
        $values = [];
        foreach ($keys as $key) {
            $values[$key] = array_key_exists($key, $found) ? $found[$key] : $default;
        }

        return $values;
    }

    public function setMultiple($values, $ttl = null): bool
    {
        $all = [];
        foreach (self::each($values) as $key => $value) {
            // PHP's arrays convert numeric keys to integers.
            $all[self::key(is_int($key) ? (string) $key : $key)] = $value;
        }

        return $this->store($all, $ttl);
    }

    public function deleteMultiple($keys): bool
    {
        $keys = self::keys($keys);

        return $keys === [] || $this->remove($keys);
    }

    /** @param array<array-key, mixed> $values */
    private function store(array $values, mixed $ttl): bool
    {
        $seconds = match (true) {
            $ttl === null, is_int($ttl) => $ttl,
            $ttl instanceof \DateInterval => (new \DateTimeImmutable('@0'))->add($ttl)->getTimestamp(),
            default => throw new InvalidCacheArgument('A time to live is seconds, a DateInterval or null, not ' . get_debug_type($ttl)),
        };
        if ($values === []) {
            return true;
        }
        if ($seconds !== null && $seconds <= 0) {
            return $this->remove(array_map(strval(...), array_keys($values)));
        }

        return $this->write($values, $seconds);
    }

    private static function key(mixed $key): string
    {
        if (!is_string($key)) {
            throw new InvalidCacheArgument('A key is a text, not ' . get_debug_type($key));
        }
        if ($key === '' || strlen($key) > 512 || strpbrk($key, '{}()/\\@:') !== false) {
            throw new InvalidCacheArgument('A key has 1 to 512 bytes and none of {}()/\\@: in it: "' . substr($key, 0, 64) . '"');
        }

        return $key;
    }

    /** @return list<string> */
    private static function keys(mixed $keys): array
    {
        $all = [];
        foreach (self::each($keys) as $key) {
            $all[] = self::key($key);
        }

        return $all;
    }

    /** @return iterable<mixed, mixed> */
    private static function each(mixed $items): iterable
    {
        return is_iterable($items) ? $items : throw new InvalidCacheArgument('Several of them are an iterable, not ' . get_debug_type($items));
    }
}
