<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\Batch;
use Surus\CompositeException;
use Surus\Log;
use Surus\Queue;
use Surus\Task;
use Surus\TimeoutException;

/**
 * The functions of namespace Surus that concern tasks: csrc/app/jobs.c calls the method of the same name.
 *
 * @internal
 */
final class Tasks
{
    /**
     * @template T
     * @param callable(): T $job
     * @return Task<T>
     */
    public static function async(callable $job): Task
    {
        return Task::start($job);
    }

    /**
     * @template T
     * @param Task<T> $task
     * @return T
     */
    public static function await(Task $task): mixed
    {
        return $task->await();
    }

    /**
     * @template K of array-key
     * @template T
     * @param iterable<K, Task<T>|callable(): T> $jobs
     * @return array<K, T>
     */
    public static function all(iterable $jobs, ?int $concurrency = null): array
    {
        if ($concurrency !== null && $concurrency < 1) {
            throw at_caller(new \ValueError("Surus\\all(): Argument #2 (\$concurrency) must be at least 1, $concurrency given"));
        }
        $arrivals = new Arrivals();
        /** @var array<K, T> $results */
        $results = [];
        $running = $own = $keys = [];
        $collect = static function () use ($arrivals, &$results, &$running, &$own, &$keys): void {
            $index = $arrivals->next();
            $task = $running[$index];
            unset($running[$index], $own[$index]);
            $results[$keys[$index]] = $task->await();
        };
        try {
            $index = 0;
            foreach ($jobs as $key => $job) {
                $task = self::taskOf('all', $key, $job);
                $results[$key] = null;
                $running[$index] = $task;
                $keys[$index] = $key;
                if ($task !== $job) {
                    $own[$index] = $task;
                }
                $task->watch($arrivals, $index++);
                while ($concurrency !== null && \count($running) >= $concurrency) {
                    $collect();
                }
            }
            while ($running !== []) {
                $collect();
            }
            return $results;
        } finally {
            self::leave($arrivals, $running, $own);
        }
    }

    /**
     * @template T
     * @param iterable<Task<T>|callable(): T> $jobs
     * @return T
     */
    public static function any(iterable $jobs): mixed
    {
        $arrivals = new Arrivals();
        [$tasks, $own] = self::begin('any', $jobs, $arrivals);
        try {
            $reasons = [];
            while (\count($reasons) < \count($tasks)) {
                $key = $arrivals->next();
                try {
                    return $tasks[$key]->await();
                } catch (\Throwable $reason) {
                    $reasons[$key] = $reason;
                }
            }
            \ksort($reasons);
            throw at_caller(new CompositeException($reasons));
        } finally {
            self::leave($arrivals, $tasks, $own);
        }
    }

    /**
     * @template T
     * @param iterable<Task<T>|callable(): T> $jobs
     * @return T
     */
    public static function race(iterable $jobs): mixed
    {
        $arrivals = new Arrivals();
        [$tasks, $own] = self::begin('race', $jobs, $arrivals);
        try {
            return $tasks[$arrivals->next()]->await();
        } finally {
            self::leave($arrivals, $tasks, $own);
        }
    }

    /**
     * @template T
     * @param callable(): T $job
     * @return T
     */
    public static function timeout(float $seconds, callable $job): mixed
    {
        self::needSeconds('timeout', $seconds);
        $until = Arrivals::now() + $seconds;
        $task = Task::start($job);
        try {
            if (!$task->wait($until)) {
                Task::end([$task]);
                $task->ignore();
                throw at_caller(new TimeoutException("It was not done within $seconds s, and was cancelled"));
            }
            return $task->await();
        } finally {
            Task::end([$task]);
        }
    }

    public static function delay(float $seconds): void
    {
        self::needSeconds('delay', $seconds);
        $until = Arrivals::now() + $seconds;
        do {
            $left = \max($until - Arrivals::now(), 0.0);
            \usleep(1 + (int) (\min($left, 3600.0) * 1e6));
        } while ($left > 3600.0);
    }

    public static function offload(callable $job, mixed ...$arguments): mixed
    {
        return Offload::call($job, $arguments);
    }

    public static function defer(callable $job): void
    {
        job_defer($job(...));
    }

    public static function background(callable $job): void
    {
        $job = $job(...);
        $run = static function () use ($job): void {
            try {
                $job();
            } catch (\Throwable $error) {
                (new Log('background'))->error('What ran in the background has failed', ['exception' => $error]);
            }
        };
        try {
            background_start($run);
        } catch (\Error $error) {
            throw at_caller($error);
        }
    }

    public static function after(float $seconds, callable $job, bool $reloads = true): void
    {
        Timers::after($seconds, $job, $reloads);
    }

    public static function every(float $seconds, callable $job): void
    {
        Timers::every($seconds, $job);
    }

    public static function cron(string $expression, callable $job): void
    {
        Timers::cron($expression, $job);
    }

    /** @param iterable<mixed> $payloads */
    public static function batch(string $queue, iterable $payloads = []): Batch
    {
        $batch = new Batch();
        foreach ($payloads as $payload) {
            $batch->add($queue, $payload);
        }

        return $batch;
    }

    public static function dispatch(
        string $queue,
        mixed $payload = null,
        float $delay = 0.0,
        int $priority = 0,
        ?string $unique = null,
    ): string {
        return (new Queue($queue))->push($payload, $delay, $priority, $unique);
    }

    private static function needSeconds(string $function, float $seconds): void
    {
        if (!($seconds >= 0 && $seconds < 1e9)) {
            throw at_caller(new \ValueError("Surus\\$function(): Argument #1 (\$seconds) must be a time from 0 on, $seconds given"));
        }
    }

    private static function taskOf(string $function, int|string $key, mixed $job): Task
    {
        if ($job instanceof Task) {
            return $job;
        }
        if (!\is_callable($job)) {
            $type = \get_debug_type($job);
            throw at_caller(new \TypeError("Surus\\$function(): Argument #1 (\$jobs) must have callables and tasks, but \"$key\" is $type"));
        }
        return Task::start($job);
    }

    /**
     * @param iterable<mixed> $jobs
     * @return array{non-empty-array<array-key, Task<mixed>>, array<array-key, Task<mixed>>} all, and those that it has started
     */
    private static function begin(string $function, iterable $jobs, Arrivals $arrivals): array
    {
        $tasks = $own = [];
        try {
            foreach ($jobs as $key => $job) {
                if (isset($tasks[$key])) {
                    throw at_caller(new \ValueError("Surus\\$function(): Argument #1 (\$jobs) has the key \"$key\" twice"));
                }
                $tasks[$key] = self::taskOf($function, $key, $job);
                if ($tasks[$key] !== $job) {
                    $own[$key] = $tasks[$key];
                }
            }
            if ($tasks === []) {
                throw at_caller(new \ValueError("Surus\\$function(): Argument #1 (\$jobs) must not be empty"));
            }
        } catch (\Throwable $error) {
            Task::end($own);
            throw $error;
        }
        foreach ($tasks as $key => $task) {
            $task->watch($arrivals, $key);
        }
        return [$tasks, $own];
    }

    /**
     * @param array<Task<mixed>> $tasks
     * @param array<Task<mixed>> $own those that the function has started: they end with it
     */
    private static function leave(Arrivals $arrivals, array $tasks, array $own): void
    {
        foreach ($tasks as $task) {
            $task->unwatch($arrivals);
        }
        Task::end($own);
    }
}
