<?php

declare(strict_types=1);

namespace Surus\Schema;

/** A class that cannot be input; the message names file, line and parameter. An error at boot. */
final class Undescribable extends \LogicException
{
}
