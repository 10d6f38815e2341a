<?php

declare(strict_types=1);

namespace Psr\SimpleCache;

/** PSR-16, used if no package declares it. */
interface CacheException extends \Throwable
{
}
