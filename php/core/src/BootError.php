<?php

declare(strict_types=1);

namespace Surus;

/** The application cannot be served as it is written. The message names the place. */
class BootError extends \LogicException
{
}
