<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * A connection while it is used. It is returned once: at the end of its use, or, after an exit() that runs no `finally`
 * block, when this object is destroyed.
 *
 * @internal
 */
final class PoolLease
{
    public readonly PooledConnection $connection;
    public bool $isClean = false;
    private readonly string $holder;
    private bool $hasEnded = false;

    /**
     * @param \Closure(): PooledConnection $take
     * @param \Closure(PooledConnection, string, bool): void $give
     */
    public function __construct(\Closure $take, private readonly \Closure $give)
    {
        $this->holder = self::holder();
        $this->connection = $take();
    }

    /** The running request, and its task: each waits until another one gives a connection back. */
    public static function holder(): string
    {
        $task = job_task();

        return request_number() . ' ' . ($task === null ? '' : spl_object_id($task));
    }

    public function __destruct()
    {
        if (isset($this->connection)) {
            $this->end();
        }
    }

    public function end(): void
    {
        if (!$this->hasEnded) {
            $this->hasEnded = true;
            ($this->give)($this->connection, $this->holder, $this->isClean);
        }
    }
}
