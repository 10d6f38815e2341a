<?php

declare(strict_types=1);

namespace Surus\Cache;

use Psr\SimpleCache\CacheException;

/** The server that keeps the cache does not answer as it should. */
final class CacheFailure extends \RuntimeException implements CacheException
{
}
