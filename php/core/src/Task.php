<?php

declare(strict_types=1);

namespace Surus;

use Surus\Internal\Arrivals;

use function Surus\Internal\at_caller;
use function Surus\Internal\job_cancel;
use function Surus\Internal\job_number;
use function Surus\Internal\job_start;
use function Surus\Internal\job_task;
use function Surus\Internal\report;
use function Surus\Internal\request_number;

/**
 * A piece of a request's work that runs while others wait: see Surus\async().
 *
 * @template-covariant T
 */
final class Task
{
    /** How many were started, in all requests. */
    private static int $started = 0;

    private int $number = 0;

    private readonly int $order;

    private readonly int $request;

    private bool $complete = false;

    private bool $succeeded = false;

    private bool $observed = false;

    private mixed $value = null;

    private ?\Throwable $error = null;

    /** @var array<int, array{Arrivals, array-key}> */
    private array $watchers = [];

    /** The task that has started it; null: the request's own code. */
    private ?Task $owner = null;

    /** @var array<int, Task<mixed>> those that it has started, and that have not completed */
    private array $children = [];

    private function __construct(private ?\Closure $job)
    {
        $this->request = request_number();
        $this->order = ++self::$started;
    }

    /** @internal the one that was started last: later ones have higher numbers, see isOf() */
    public static function last(): int
    {
        return self::$started;
    }

    /** @internal whether it, or one that has started it, was started by $owner (null: the request's own code) after $last */
    public function isOf(?Task $owner, int $last): bool
    {
        for ($task = $this; $task !== null; $task = $task->owner) {
            if ($task->owner === $owner && $task->order > $last) {
                return true;
            }
        }

        return false;
    }

    private function check(): void
    {
        if ($this->request !== request_number()) {
            throw at_caller(new \LogicException('This is a task of another request'));
        }
    }

    /**
     * @internal Surus\async() does this
     * @template R
     * @param callable(): R $job
     * @return Task<R>
     */
    public static function start(callable $job): self
    {
        $task = new self($job(...));
        $task->number = job_start($task);
        $task->owner = job_task();
        if ($task->owner !== null) {
            $task->owner->children[$task->number] = $task;
        }
        return $task;
    }

    /**
     * Waits until the task has completed. Other tasks run meanwhile.
     *
     * @return T what its callable has returned
     * @throws CancelledException if it was cancelled
     * @throws \Throwable what its callable has thrown
     */
    public function await(): mixed
    {
        $this->wait();
        $this->observed = true;
        if ($this->error !== null) {
            throw $this->error;
        }
        if (!$this->succeeded) {
            throw at_caller(new CancelledException());
        }
        return $this->value;
    }

    /**
     * Ends the task: what it waits for is over, `finally` blocks run, and nothing catches it. They may wait, so await() it to
     * know that it has ended. Does nothing if it has completed.
     */
    public function cancel(): void
    {
        if (!$this->complete) {
            $this->check();
            job_cancel($this->number);
        }
    }

    /** Whether it has returned, has thrown, or has ended because it was cancelled. */
    public function isComplete(): bool
    {
        return $this->complete;
    }

    /** Its exception is not logged if nobody awaits it. */
    public function ignore(): void
    {
        $this->observed = true;
    }

    /**
     * @internal
     * @param float|null $until in seconds of Arrivals::now()
     * @return bool false: it has not completed by then
     */
    public function wait(?float $until = null): bool
    {
        if ($this->complete) {
            return true;
        }
        $this->check();
        if ($this->number === job_number()) {
            throw at_caller(new \LogicException('A task awaits itself'));
        }
        $arrivals = new Arrivals();
        $this->watch($arrivals, 0);
        try {
            return $arrivals->next($until) !== null;
        } finally {
            $this->unwatch($arrivals);
        }
    }

    /** @internal */
    public function watch(Arrivals $arrivals, int|string $key): void
    {
        if ($this->complete) {
            $arrivals->note($key);
        } else {
            $this->check();
            $this->watchers[\spl_object_id($arrivals)] = [$arrivals, $key];
        }
    }

    /** @internal */
    public function unwatch(Arrivals $arrivals): void
    {
        unset($this->watchers[\spl_object_id($arrivals)]);
    }

    /**
     * @internal Cancels tasks and waits for their ends.
     * @param array<Task<mixed>> $tasks
     */
    public static function end(array $tasks): void
    {
        foreach ($tasks as $task) {
            $task->cancel();
        }
        foreach ($tasks as $task) {
            $task->wait();
        }
    }

    /** Called on the task's own stack. */
    private function run(): void
    {
        try {
            $this->value = ($this->job)();
            $this->succeeded = true;
        } catch (\Throwable $error) {
            $this->error = $error;
        } finally {
            $this->job = null;
            try {
                self::end($this->children);
            } finally {
                $this->complete();
            }
        }
    }

    /** Called on the task's own stack, too, when it has ended; waits for nothing. */
    private function complete(): void
    {
        if ($this->complete) {
            return;
        }
        $this->complete = true;
        $this->job = null;
        foreach ($this->children as $task) {
            $task->cancel();
        }
        if ($this->owner !== null) {
            unset($this->owner->children[$this->number]);
            $this->owner = null;
        }
        $watchers = $this->watchers;
        $this->watchers = [];
        foreach ($watchers as [$arrivals, $key]) {
            $arrivals->note($key);
        }
    }

    public function __destruct()
    {
        if ($this->error !== null && !$this->observed) {
            report($this->error);
        }
    }
}
