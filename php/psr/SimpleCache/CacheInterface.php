<?php

declare(strict_types=1);

namespace Psr\SimpleCache;

/**
 * PSR-16, used if no package declares it. Parameters have types and results none: it is compatible with classes for any
 * version.
 */
interface CacheInterface
{
    /**
     * @return mixed the default if there is no value
     *
     * @throws InvalidArgumentException for a key that is not allowed
     */
    public function get(string $key, mixed $default = null);

    /**
     * @param null|int|\DateInterval $ttl seconds; null: the cache decides
     *
     * @return bool whether it was written
     *
     * @throws InvalidArgumentException for a key that is not allowed
     */
    public function set(string $key, mixed $value, null|int|\DateInterval $ttl = null);

    /**
     * @return bool whether it was deleted
     *
     * @throws InvalidArgumentException for a key that is not allowed
     */
    public function delete(string $key);

    /** @return bool whether everything was deleted */
    public function clear();

    /** @param iterable<string> $keys */
    public function getMultiple(iterable $keys, mixed $default = null);

    /** @param iterable<string, mixed> $values */
    public function setMultiple(iterable $values, null|int|\DateInterval $ttl = null);

    /** @param iterable<string> $keys */
    public function deleteMultiple(iterable $keys);

    /**
     * @return bool whether there is a value now
     *
     * @throws InvalidArgumentException for a key that is not allowed
     */
    public function has(string $key);
}
