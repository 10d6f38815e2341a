<?php

declare(strict_types=1);

namespace Psr\SimpleCache;

/**
 * PSR-16, for where no package declares it. Parameters have types and results none: classes made for any version fit.
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
     * @param null|int|\DateInterval $ttl seconds; null: as long as the cache likes
     *
     * @return bool whether it was written
     *
     * @throws InvalidArgumentException for a key that is not allowed
     */
    public function set(string $key, mixed $value, null|int|\DateInterval $ttl = null);

    /**
     * @return bool whether it is gone
     *
     * @throws InvalidArgumentException for a key that is not allowed
     */
    public function delete(string $key);

    /** @return bool whether all is gone */
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
