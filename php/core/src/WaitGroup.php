<?php

declare(strict_types=1);

namespace Surus;

use Surus\Internal\Line;

use function Surus\Internal\at_caller;

/** Waits until a number of things is done, whoever does them. For tasks whose results matter, Surus\all() is simpler. */
final class WaitGroup
{
    private int $count = 0;

    private readonly Line $line;

    public function __construct()
    {
        $this->line = new Line(self::class);
    }

    /** @param int $count how many more have to be done, from 0 on */
    public function add(int $count = 1): void
    {
        if ($count < 0) {
            throw at_caller(new \ValueError("Surus\\WaitGroup::add(): Argument #1 (\$count) must be at least 0, $count given"));
        }
        $this->count += $count;
    }

    /**
     * One is done.
     *
     * @throws \LogicException if more are done than were added
     */
    public function done(): void
    {
        $this->line->check();
        if ($this->count === 0) {
            throw at_caller(new \LogicException('More was done than was added to the wait group'));
        }
        if (--$this->count === 0) {
            $this->line->callAll();
        }
    }

    /** Waits until all are done. */
    public function wait(): void
    {
        $this->line->check();
        while ($this->count > 0) {
            $this->line->wait(static fn () => null);
        }
    }
}
