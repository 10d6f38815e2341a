<?php

declare(strict_types=1);

namespace Surus\Doctor;

/**
 * @internal
 */
final class Finding
{
    public function __construct(public readonly Kind $kind, public readonly Place $place, public readonly string $what)
    {
    }
}
