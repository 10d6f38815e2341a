<?php

declare(strict_types=1);

namespace Surus\Attribute;

/** A value of the query string as an argument; by the parameter's name unless another one is given. A value that does not fit is a 400. */
#[\Attribute(\Attribute::TARGET_PARAMETER)]
final class Query
{
    /** @param string $name in the query string; "" for that of the parameter */
    public function __construct(public readonly string $name = '')
    {
    }
}
