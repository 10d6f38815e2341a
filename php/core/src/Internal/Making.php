<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\Task;

/**
 * A service that is being made, as long as this object is there: only the code that makes it has it.
 *
 * @internal
 */
final class Making
{
    /** @var array<int, \WeakReference<Awaited>> all who wait for one */
    private static array $waiting = [];

    private readonly int $request;

    /** Null: the request's own code. */
    private readonly ?Task $task;

    private readonly ?\Fiber $fiber;

    private readonly int $begun;

    /** @var list<\WeakReference<Awaited>> those who wait for this one */
    private array $places = [];

    private ?\Throwable $error = null;

    public function __construct()
    {
        $this->request = request_number();
        $this->task = job_task();
        $this->fiber = \Fiber::getCurrent();
        $this->begun = Task::last();
    }

    /** Whether tasks can wait for each other here: not while an application boots. */
    public static function isPossible(): bool
    {
        return request_number() !== 0;
    }

    /** Why it could not be made: those who wait in the same request get this, too. */
    public function fail(\Throwable $error): void
    {
        $this->error = $error;
    }

    /** A place among those who wait for it; null: what runs is to make another one, as this one cannot be waited for. */
    public function join(string $id): ?Awaited
    {
        $request = request_number();
        $task = job_task();
        if ($this->request === $request && $this->task === $task && $this->fiber !== \Fiber::getCurrent()) {
            return null;
        }
        if ($this->waitsFor($request, $task)) {
            throw new \LogicException("Services need each other: $id is asked for by what makes it");
        }
        $place = new Awaited($this, $request, $task, $request === $this->request);
        self::$waiting[\spl_object_id($place)] = $this->places[] = \WeakReference::create($place);

        return $place;
    }

    public static function leave(Awaited $place): void
    {
        unset(self::$waiting[\spl_object_id($place)]);
    }

    /** Whether this code is a part of it, or of what it waits for, over however many steps. */
    private function waitsFor(int $request, ?Task $task): bool
    {
        if ($this->isBy($request, $task)) {
            return true;
        }
        foreach (self::$waiting as $place) {
            $place = $place->get();
            if ($place !== null && $this->isBy($place->request, $place->task) && $place->making->get()?->waitsFor($request, $task)) {
                return true;
            }
        }

        return false;
    }

    /** Whether this code makes it, or was started by what makes it. */
    private function isBy(int $request, ?Task $task): bool
    {
        return $this->request === $request && ($this->task === $task || $task?->isOf($this->task, $this->begun));
    }

    /** It is over, also where exit() has left no other code to say so. */
    public function __destruct()
    {
        foreach ($this->places as $place) {
            $place->get()?->call($this->error);
        }
    }
}
