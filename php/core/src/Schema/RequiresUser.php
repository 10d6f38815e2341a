<?php

declare(strict_types=1);

namespace Surus\Schema;

/** A middleware that lets nobody through whom none in front of it has recognised. */
interface RequiresUser
{
}
