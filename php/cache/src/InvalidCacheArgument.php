<?php

declare(strict_types=1);

namespace Surus\Cache;

use Psr\Cache\InvalidArgumentException as InvalidItemArgument;
use Psr\SimpleCache\InvalidArgumentException;

/** An invalid key or time to live. */
final class InvalidCacheArgument extends \InvalidArgumentException implements InvalidArgumentException, InvalidItemArgument
{
}
