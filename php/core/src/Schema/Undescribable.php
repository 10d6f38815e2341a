<?php

declare(strict_types=1);

namespace Surus\Schema;

/** A class that cannot be used as input; the message names file, line and parameter. */
final class Undescribable extends \Surus\BootError
{
}
