<?php

declare(strict_types=1);

namespace Surus\Cache;

use Psr\Cache\CacheItemInterface;
use Psr\Cache\CacheItemPoolInterface;

/**
 * PSR-6 over a cache of Surus: {@see SharedCache} unless another one is given.
 *
 * Parameters have no types, so that it is compatible with every version of psr/cache.
 */
final class CachePool implements CacheItemPoolInterface
{
    /** A pool may live as long as its worker: then nothing else saves them. */
    private const MOST_DEFERRED = 1000;

    /** @var array<array-key, CacheItem> */
    private array $deferred = [];

    public function __construct(private readonly Cache $cache = new SharedCache('pool'))
    {
    }

    public function __destruct()
    {
        $this->commit();
    }

    public function getItem($key): CacheItemInterface
    {
        foreach ($this->getItems([$key]) as $item) {
            return $item;
        }
        throw new \LogicException('Each key has an item');
    }

    /** @return array<array-key, CacheItem> */
    public function getItems(array $keys = []): array
    {
        $items = [];
        foreach ($this->cache->getMultiple($keys, $this) as $key => $value) {
            $deferred = $this->deferred[$key] ?? null;
            $items[$key] = match (true) {
                $deferred !== null => $deferred->saved(),
                $value === $this => new CacheItem((string) $key),
                default => new CacheItem((string) $key, $value, true),
            };
        }

        return $items;
    }

    public function hasItem($key): bool
    {
        return $this->getItem($key)->isHit();
    }

    public function clear(): bool
    {
        $this->deferred = [];

        return $this->cache->clear();
    }

    public function deleteItem($key): bool
    {
        return $this->deleteItems([$key]);
    }

    public function deleteItems(array $keys): bool
    {
        $deleted = $this->cache->deleteMultiple($keys);
        foreach ($keys as $key) {
            unset($this->deferred[$key]);
        }

        return $deleted;
    }

    public function save(CacheItemInterface $item): bool
    {
        if (!$item instanceof CacheItem) {
            throw new InvalidCacheArgument('An item of another pool: ' . $item::class);
        }
        unset($this->deferred[$item->getKey()]);

        return $this->cache->set($item->getKey(), $item->value(), $item->seconds());
    }

    public function saveDeferred(CacheItemInterface $item): bool
    {
        if (!$item instanceof CacheItem) {
            throw new InvalidCacheArgument('An item of another pool: ' . $item::class);
        }
        $this->deferred[$item->getKey()] = $item->saved();

        return count($this->deferred) < self::MOST_DEFERRED || $this->commit();
    }

    public function commit(): bool
    {
        $saved = true;
        foreach ($this->deferred as $item) {
            $saved = $this->save($item) && $saved;
        }

        return $saved;
    }
}
