<?php

declare(strict_types=1);

namespace Surus\Doctor;

/**
 * @internal
 */
enum Kind: string
{
    case Leak = 'leak';
    case Connection = 'connection';
    case Growth = 'growth';
    case Change = 'change';

    /** Whether it is wrong for certain. */
    public function isFault(): bool
    {
        return $this === self::Leak || $this === self::Connection;
    }

    public function remedy(): string
    {
        return match ($this) {
            self::Leak => 'Another request finds it there. Keep it in a local variable, in $request->attribute(), or in a service that is scoped()',
            self::Connection => 'Two requests that use it at the same time get a Surus\ConnectionInUse. Declare it as scoped(), or use a Surus\Pool',
            self::Growth => 'It is never emptied. Give it a bound',
            self::Change => 'Right for caches and counters; wrong for what belongs to a request',
        };
    }
}
