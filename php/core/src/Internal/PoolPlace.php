<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * A place in the queue for a pool's connection.
 *
 * @internal
 */
final class PoolPlace
{
    public bool $isCalled = false;
    public bool $hasLeft = false;

    /** After a call: the connection; null: the request may open one. */
    public ?PooledConnection $connection = null;

    public function __construct(public readonly int $ticket)
    {
    }
}
