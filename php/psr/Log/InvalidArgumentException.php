<?php

declare(strict_types=1);

namespace Psr\Log;

/** PSR-3, used if no package declares it. */
class InvalidArgumentException extends \InvalidArgumentException
{
}
