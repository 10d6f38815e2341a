<?php

declare(strict_types=1);

namespace Surus\Queue\Laravel;

use Illuminate\Contracts\Queue\Queue as QueueContract;
use Illuminate\Queue\Queue as BaseQueue;
use Surus\Queue;

/** Queues of the server as a connection of Laravel's: `dispatch()` puts jobs here, and `artisan queue:work` runs them. */
final class LaravelQueue extends BaseQueue implements QueueContract
{
    public function __construct(
        private readonly string $default,
        private readonly float $blockFor,
        bool $dispatchAfterCommit,
    ) {
        $this->dispatchAfterCommit = $dispatchAfterCommit;
    }

    /** @param string|null $queue */
    public function size($queue = null): int
    {
        $counts = $this->named($queue)->counts();

        return $counts['waiting'] + $counts['delayed'] + $counts['running'];
    }

    /** @param string|null $queue */
    public function pendingSize($queue = null): int
    {
        return $this->named($queue)->counts()['waiting'];
    }

    /** @param string|null $queue */
    public function delayedSize($queue = null): int
    {
        return $this->named($queue)->counts()['delayed'];
    }

    /** @param string|null $queue */
    public function reservedSize($queue = null): int
    {
        return $this->named($queue)->counts()['running'];
    }

    /**
     * Not known.
     *
     * @param string|null $queue
     */
    public function creationTimeOfOldestPendingJob($queue = null): ?int
    {
        return null;
    }

    /**
     * @param string|object $job
     * @param mixed $data
     * @param string|null $queue
     */
    public function push($job, $data = '', $queue = null): mixed
    {
        return $this->enqueueUsing(
            $job,
            $this->createPayload($job, $queue ?? $this->default, $data),
            $queue,
            null,
            fn (string $payload, ?string $queue): string => $this->pushRaw($payload, $queue),
        );
    }

    /**
     * @param string $payload
     * @param string|null $queue
     * @param array<string, mixed> $options
     */
    public function pushRaw($payload, $queue = null, array $options = []): string
    {
        return $this->named($queue)->pushRaw($payload);
    }

    /**
     * @param \DateTimeInterface|\DateInterval|int $delay
     * @param string|object $job
     * @param mixed $data
     * @param string|null $queue
     */
    public function later($delay, $job, $data = '', $queue = null): mixed
    {
        return $this->enqueueUsing(
            $job,
            $this->createPayload($job, $queue ?? $this->default, $data),
            $queue,
            $delay,
            fn (string $payload, ?string $queue, mixed $delay): string
                => $this->named($queue)->pushRaw($payload, (float) $this->secondsUntil($delay)),
        );
    }

    /** @param string|null $queue */
    public function pop($queue = null): ?LaravelJob
    {
        $job = $this->named($queue)->take($this->blockFor, raw: true);

        return $job === null ? null : new LaravelJob($this->container, $job, $this->connectionName);
    }

    private function named(?string $queue): Queue
    {
        return new Queue($queue ?? $this->default);
    }
}
