<?php

declare(strict_types=1);

namespace Psr\Cache;

/** PSR-6, used if no package declares it; without types, as its first version. */
interface CacheItemPoolInterface
{
    public function getItem($key);

    public function getItems(array $keys = []);

    public function hasItem($key);

    public function clear();

    public function deleteItem($key);

    public function deleteItems(array $keys);

    public function save(CacheItemInterface $item);

    public function saveDeferred(CacheItemInterface $item);

    public function commit();
}
