<?php

declare(strict_types=1);

namespace Surus\Attribute;

/** Marks a service of which each request has its own object. */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class Scoped
{
}
