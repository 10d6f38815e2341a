<?php

declare(strict_types=1);

namespace Surus\Schema;

/** A middleware that gets the user from the session which an outer {@see SessionScheme} has read. */
interface UserOfSession
{
}
