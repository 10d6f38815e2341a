<?php

declare(strict_types=1);

namespace Psr\Cache;

/** PSR-6, used if no package declares it; without types, as its first version. */
interface CacheItemInterface
{
    public function getKey();

    public function get();

    public function isHit();

    public function set($value);

    public function expiresAt($expiration);

    public function expiresAfter($time);
}
