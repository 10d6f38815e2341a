<?php

declare(strict_types=1);

namespace Surus;

use function Surus\Internal\at_caller;
use function Surus\Internal\job_number;

/** Lets one of a request's tasks do something at a time, also where it waits meanwhile. */
final class Mutex
{
    private readonly Semaphore $place;

    private ?int $holder = null;

    public function __construct()
    {
        $this->place = new Semaphore(1);
    }

    /**
     * Calls it when no other task is in such a call of this mutex.
     *
     * @template T
     * @param callable(): T $job
     * @return T
     * @throws \LogicException if this task is in one already
     */
    public function with(callable $job): mixed
    {
        $own = job_number();
        if ($this->holder === $own) {
            throw at_caller(new \LogicException('A task waits for a mutex that it holds'));
        }
        $this->place->acquire();
        $this->holder = $own;
        try {
            return $job();
        } finally {
            $this->holder = null;
            $this->place->release();
        }
    }
}
