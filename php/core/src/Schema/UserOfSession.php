<?php

declare(strict_types=1);

namespace Surus\Schema;

/** A middleware that takes the user from what a {@see SessionScheme} in front of it has read. */
interface UserOfSession
{
}
