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
    private readonly int $request;
    private bool $hasEnded = false;

    /**
     * @param \Closure(): PooledConnection $take
     * @param \Closure(PooledConnection, int, bool): void $give
     */
    public function __construct(\Closure $take, private readonly \Closure $give)
    {
        $this->request = request_number();
        $this->connection = $take();
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
            ($this->give)($this->connection, $this->request, $this->isClean);
        }
    }
}
