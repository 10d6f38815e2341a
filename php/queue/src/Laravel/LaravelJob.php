<?php

declare(strict_types=1);

namespace Surus\Queue\Laravel;

use Illuminate\Container\Container;
use Illuminate\Contracts\Queue\Job as JobContract;
use Illuminate\Queue\Jobs\Job as BaseJob;
use Surus\Job;

/** A job that a Laravel worker has taken. If the worker dies, the job goes to another one at once. */
final class LaravelJob extends BaseJob implements JobContract
{
    public function __construct(Container $container, private readonly Job $job, string $connectionName)
    {
        $this->container = $container;
        $this->connectionName = $connectionName;
        $this->queue = $job->queue;
    }

    /** @param int $delay seconds */
    public function release($delay = 0): void
    {
        parent::release($delay);
        $this->job->retry((float) $delay);
    }

    public function delete(): void
    {
        if (!$this->isDeletedOrReleased()) {
            $this->job->done();
        }
        parent::delete();
    }

    public function attempts(): int
    {
        return $this->job->attempt;
    }

    public function getJobId(): string
    {
        return $this->job->id;
    }

    public function getRawBody(): string
    {
        return $this->job->payload;
    }
}
