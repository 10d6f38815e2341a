<?php

declare(strict_types=1);

namespace Surus;

use Surus\Internal\Queues;

/**
 * A queue of jobs, which outlive requests, processes and the server. The application declares who runs them ({@see App::queue()}).
 */
final class Queue
{
    /** @throws \ValueError if the name is none */
    public function __construct(public readonly string $name)
    {
        Queues::needName($name);
    }

    /**
     * Adds a job. When this returns, the job is on disk.
     *
     * @param mixed $payload what the handler gets; it is serialised
     * @param float $delay seconds until it may run
     * @param int $priority the highest is first
     * @param ?string $unique while a job with this key waits or runs, another one is not added
     *
     * @return string the id of the job: of the one that has the unique key, if there is one
     *
     * @throws QueueException if it cannot be kept: the disk or the queue is full
     * @throws \TypeError if the payload cannot be serialised
     */
    public function push(mixed $payload = null, float $delay = 0.0, int $priority = 0, ?string $unique = null): string
    {
        return $this->pushRaw(Queues::serialized($payload), $delay, $priority, $unique);
    }

    /**
     * As {@see push()}, for a text that {@see take()} returns with `$raw`.
     */
    public function pushRaw(string $payload, float $delay = 0.0, int $priority = 0, ?string $unique = null): string
    {
        Queues::needDelay('Surus\\Queue::push(): Argument #2', $delay);
        Queues::needPriority('Surus\\Queue::push(): Argument #3', $priority);
        if ($unique !== null && (\strlen($unique) > 1000 || \preg_match('//u', $unique) !== 1)) {
            throw new \ValueError('Surus\\Queue::push(): Argument #4 ($unique) must be UTF-8 of at most 1000 bytes; use bin2hex() or hash()');
        }
        [$pushed] = Queues::ask('push', [
            'queue' => $this->name, 'delay' => $delay, 'priority' => $priority, 'unique' => $unique,
        ], $payload);

        return $pushed['id'];
    }

    /**
     * Takes the next job, for code that runs jobs itself: a worker of another framework. It must say how the job has ended; if its
     * process dies, the job goes to another one at once.
     *
     * A job whose payload cannot be unserialised here has had one of three tries, and the next one is taken; the log says so.
     *
     * @param float $wait seconds to wait for one
     * @param bool $raw the payload is a text, of {@see pushRaw()}
     *
     * @throws QueueException if the process with the jobs does not say whether there is one: is a server running?
     */
    public function take(float $wait = 0.0, bool $raw = false): ?Job
    {
        Queues::needDelay('Surus\\Queue::take(): Argument #1', $wait);
        $until = \hrtime(true) / 1e9 + $wait;
        do {
            $left = \max(0.0, $until - \hrtime(true) / 1e9);
            [$head, $payload] = Queues::ask('take', ['queue' => $this->name, 'wait' => $left]);
            $job = $head === null ? null : Queues::taken($head, $payload, $raw);
        } while ($head !== null && $job === null);

        return $job;
    }

    /**
     * How many jobs it has.
     *
     * @return array{waiting: int, delayed: int, running: int, failed: int, done: int} `done`: since the process that has the jobs
     *     was started
     */
    public function counts(): array
    {
        [$counts] = Queues::ask('counts', []);
        foreach ($counts['queues'] as $queue) {
            if ($queue['queue'] === $this->name) {
                unset($queue['queue'], $queue['places']);
                return $queue;
            }
        }

        return ['waiting' => 0, 'delayed' => 0, 'running' => 0, 'failed' => 0, 'done' => 0];
    }
}
