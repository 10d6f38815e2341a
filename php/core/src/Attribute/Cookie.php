<?php

declare(strict_types=1);

namespace Surus\Attribute;

/** A cookie as an argument, by the parameter's name unless another one is given. An invalid value is a 400. */
#[\Attribute(\Attribute::TARGET_PARAMETER)]
final class Cookie
{
    /** @param string $name of the cookie; "": the name of the parameter */
    public function __construct(public readonly string $name = '')
    {
    }
}
