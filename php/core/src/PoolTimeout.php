<?php

declare(strict_types=1);

namespace Surus;

/** A pool had no connection in time. Uncaught, it is a 503. */
final class PoolTimeout extends \RuntimeException
{
    public function getStatusCode(): int
    {
        return 503;
    }
}
