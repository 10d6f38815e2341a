<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\BootError;

/**
 * The queues of an application.
 *
 * @internal
 */
trait DeclaresQueues
{
    /** @var array<string, array{array<string, mixed>, mixed, string}> by name: options, handler, place */
    private array $queues = [];

    /**
     * Runs the jobs of a queue in this application: each in a fiber, as a request that nobody has sent.
     *
     * The handler is called with the payload and the {@see \Surus\Job}. When it returns, the job is done. After an exception, a fatal
     * error, `exit`, the end of its time or the death of its process it runs again, with a delay that doubles, until it has had its
     * tries; then it is among the failed jobs (`surus queue failed`).
     *
     * @param callable|object|class-string|array{class-string, string} $handler a class, or an object, has the method `handle` or `__invoke`
     * @param int $concurrency jobs that run at the same time, in each worker
     * @param int $tries runs of a job at most
     * @param float $timeout seconds that a run may take; 0: as long as it likes
     * @param float $backoff seconds before the second run; each further one waits twice as long, at most an hour
     * @param ?string $rate how many begin in a time, in all workers together: `10/s`, `100/m`, `1000/h`, `5/30s`; evenly, not all at once
     */
    public function queue(
        string $name,
        mixed $handler,
        int $concurrency = 100,
        int $tries = 3,
        float $timeout = 60.0,
        float $backoff = 1.0,
        ?string $rate = null,
    ): static {
        $origin = Origin::caller();
        try {
            Queues::needName($name);
        } catch (\ValueError $error) {
            throw new BootError("$origin: {$error->getMessage()}");
        }
        foreach (['concurrency' => $concurrency, 'tries' => $tries] as $what => $count) {
            if ($count < 1 || $count > 1_000_000) {
                throw new BootError("$origin: $what of a queue is from 1 to 1000000, $count given");
            }
        }
        foreach (['timeout' => $timeout, 'backoff' => $backoff] as $what => $seconds) {
            if (!($seconds >= 0 && $seconds < 1e9)) {
                throw new BootError("$origin: $what of a queue is a time from 0 on, $seconds given");
            }
        }
        $limit = $rate === null ? null : Queues::rate($rate);
        if ($rate !== null && ($limit === null || $limit[1] > 4e6)) {
            throw new BootError("$origin: rate of a queue is like 10/s, 100/m or 1000/h, \"$rate\" given");
        }
        $root = $this->outermost();
        if (isset($root->queues[$name])) {
            throw new BootError("$origin: the queue \"$name\" has a handler already, of {$root->queues[$name][2]}");
        }
        $options = [
            'queue' => $name, 'concurrency' => $concurrency, 'tries' => $tries, 'timeout' => $timeout, 'backoff' => $backoff, 'rate' => $limit,
        ];
        $root->queues[$name] = [$options, $handler, $origin];

        return $this;
    }

    /**
     * @internal for the server, once at boot
     *
     * @return array<string, array{array<string, mixed>, mixed, string}>
     */
    public function queues(): array
    {
        return $this->queues;
    }
}
