<?php

declare(strict_types=1);

namespace Surus\Attribute;

/** The JSON body as an object of the parameter's class. Invalid input is answered with 422. */
#[\Attribute(\Attribute::TARGET_PARAMETER)]
final class Body
{
}
