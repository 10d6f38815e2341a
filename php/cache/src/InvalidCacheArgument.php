<?php

declare(strict_types=1);

namespace Surus\Cache;

use Psr\SimpleCache\InvalidArgumentException;

/** No key, or no time to live. */
final class InvalidCacheArgument extends \InvalidArgumentException implements InvalidArgumentException
{
}
