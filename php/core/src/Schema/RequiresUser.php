<?php

declare(strict_types=1);

namespace Surus\Schema;

/** A middleware that refuses requests whose user no outer middleware has identified. */
interface RequiresUser
{
}
