<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * Tasks of one request that wait for something, in the order in which they have come.
 *
 * @internal
 */
final class Line
{
    private readonly int $request;

    /** @var array<int, Arrivals> */
    private array $waiting = [];

    /** @param string $class of the object that has it, for messages */
    public function __construct(private readonly string $class)
    {
        $this->request = request_number();
    }

    /** @throws \LogicException in another request than the one that has made it */
    public function check(): void
    {
        if ($this->request !== request_number()) {
            $message = "A {$this->class} is for the tasks of the request that has made it: make one in each request";
            throw at_caller(new \LogicException($message));
        }
    }

    /**
     * Waits until it is called.
     *
     * @param callable(): void $passOn called if it was, but the task has to end at the same moment
     */
    public function wait(callable $passOn): void
    {
        $own = new Arrivals();
        $id = \spl_object_id($own);
        $this->waiting[$id] = $own;
        $goesOn = false;
        try {
            $own->next();
            $goesOn = true;
        } finally {
            $called = !isset($this->waiting[$id]);
            unset($this->waiting[$id]);
            if ($called && !$goesOn) {
                $passOn();
            }
        }
    }

    /** Calls the first one; false if nobody waits. */
    public function call(): bool
    {
        $first = \array_key_first($this->waiting);
        if ($first === null) {
            return false;
        }
        $own = $this->waiting[$first];
        unset($this->waiting[$first]);
        $own->note(0);
        return true;
    }

    public function callAll(): void
    {
        while ($this->call()) {
        }
    }
}
