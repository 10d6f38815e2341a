<?php

declare(strict_types=1);

namespace Surus;

use Surus\Internal\Line;

use function Surus\Internal\at_caller;

/** Lets a bounded number of a request's tasks do something at a time; the others wait, in the order in which they have come. */
final class Semaphore
{
    private int $free;

    private readonly Line $line;

    /**
     * @param int $places from 1 on
     * @throws \ValueError for fewer
     */
    public function __construct(int $places)
    {
        if ($places < 1) {
            throw at_caller(new \ValueError("Surus\\Semaphore: \$places must be at least 1, $places given"));
        }
        $this->free = $places;
        $this->line = new Line(self::class);
    }

    /** Takes a place, which is waited for. Each must be given back with release(): with() does both. */
    public function acquire(): void
    {
        $this->line->check();
        if ($this->free > 0) {
            $this->free--;
        } else {
            $this->line->wait($this->release(...)); // for the place of the one who calls
        }
    }

    /** Gives a place back. */
    public function release(): void
    {
        $this->line->check();
        if (!$this->line->call()) {
            $this->free++;
        }
    }

    /**
     * Calls it with a place.
     *
     * @template T
     * @param callable(): T $job
     * @return T
     */
    public function with(callable $job): mixed
    {
        $this->acquire();
        try {
            return $job();
        } finally {
            $this->release();
        }
    }
}
