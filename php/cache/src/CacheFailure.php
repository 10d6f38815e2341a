<?php

declare(strict_types=1);

namespace Surus\Cache;

use Psr\SimpleCache\CacheException;

/** The cache server does not work correctly. */
final class CacheFailure extends \RuntimeException implements CacheException
{
}
