<?php

declare(strict_types=1);

namespace Surus;

/** An error in the application that is found at boot. The message names the place. */
class BootError extends \LogicException
{
}
