<?php

declare(strict_types=1);

namespace Surus;

/** Others held a lock for too long. If it is not caught, the response is a 503. */
final class LockTimeout extends \RuntimeException
{
    public function getStatusCode(): int
    {
        return 503;
    }
}
