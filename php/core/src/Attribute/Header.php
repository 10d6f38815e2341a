<?php

declare(strict_types=1);

namespace Surus\Attribute;

/** A header of the request as an argument; by the parameter's name unless another one is given. A value that does not fit is a 400. */
#[\Attribute(\Attribute::TARGET_PARAMETER)]
final class Header
{
    /** @param string $name of the header, in any case; "" for that of the parameter */
    public function __construct(public readonly string $name = '')
    {
    }
}
