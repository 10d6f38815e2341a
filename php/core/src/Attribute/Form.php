<?php

declare(strict_types=1);

namespace Surus\Attribute;

/** The body, as a form, as an object of the parameter's class. What does not fit is a 422. */
#[\Attribute(\Attribute::TARGET_PARAMETER)]
final class Form
{
}
