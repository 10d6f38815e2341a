<?php

declare(strict_types=1);

namespace Psr\SimpleCache;

/**
 * PSR-16, for where no package declares it. Parameters have types and results none: classes made for any version fit.
 */
interface CacheInterface
{
    public function get(string $key, mixed $default = null);

    public function set(string $key, mixed $value, null|int|\DateInterval $ttl = null);

    public function delete(string $key);

    public function clear();

    /** @param iterable<string> $keys */
    public function getMultiple(iterable $keys, mixed $default = null);

    /** @param iterable<string, mixed> $values */
    public function setMultiple(iterable $values, null|int|\DateInterval $ttl = null);

    /** @param iterable<string> $keys */
    public function deleteMultiple(iterable $keys);

    public function has(string $key);
}
