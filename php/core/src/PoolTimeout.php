<?php

declare(strict_types=1);

namespace Surus;

/** A pool had no free connection in time. If it is not caught, the response is a 503. */
final class PoolTimeout extends \RuntimeException
{
    public function getStatusCode(): int
    {
        return 503;
    }
}
