<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * Somebody in the line for a pool's connection.
 *
 * @internal
 */
final class PoolPlace
{
    public bool $isCalled = false;
    public bool $hasLeft = false;

    /** With a call: null is room to open one. */
    public ?PooledConnection $connection = null;

    public function __construct(public readonly int $ticket)
    {
    }
}
