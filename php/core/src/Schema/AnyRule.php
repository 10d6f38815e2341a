<?php

declare(strict_types=1);

namespace Surus\Schema;

/** @internal a {@see Rule} or a {@see ServiceRule} */
interface AnyRule
{
}
