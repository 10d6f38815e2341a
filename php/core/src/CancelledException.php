<?php

declare(strict_types=1);

namespace Surus;

/** A task was cancelled: awaiting it has no result. */
final class CancelledException extends \RuntimeException
{
    public function __construct(string $message = 'The task was cancelled', ?\Throwable $previous = null)
    {
        parent::__construct($message, 0, $previous);
    }
}
