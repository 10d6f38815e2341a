<?php

declare(strict_types=1);

namespace Psr\Cache;

/** PSR-6, used if no package declares it. */
interface CacheException extends \Throwable
{
}
