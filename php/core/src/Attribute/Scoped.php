<?php

declare(strict_types=1);

namespace Surus\Attribute;

/** A service of which each request has its own. */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class Scoped
{
}
