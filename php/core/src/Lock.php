<?php

declare(strict_types=1);

namespace Surus;

use function Surus\Internal\lock_release;
use function Surus\Internal\lock_take;

/**
 * A lock by name: of all requests of the server, in all workers, one at a time has it. The others wait, parked, in order of
 * arrival.
 *
 * It ends with release(), with this object, with its request however that ends, and with its process.
 *
 *     $result = Lock::with('invoices', fn () => $this->writeInvoices(), wait: 5.0);
 *
 * A request that takes a lock again waits for itself: that is a {@see LockTimeout}.
 */
final class Lock
{
    private bool $held = true;

    private function __construct(private readonly int $number)
    {
    }

    public function __destruct()
    {
        $this->release();
    }

    /**
     * Calls it with the lock.
     *
     * @template T
     *
     * @param \Closure(): T $do
     * @param float $wait seconds to wait for the lock
     *
     * @return T
     *
     * @throws LockTimeout if others hold it for longer
     */
    public static function with(string $name, \Closure $do, float $wait = 5.0): mixed
    {
        $lock = self::acquire($name, $wait)
            ?? throw new LockTimeout('Others hold the lock "' . substr($name, 0, 64) . "\" for longer than $wait seconds");
        try {
            return $do();
        } finally {
            $lock->release();
        }
    }

    /**
     * Takes the lock; null: others hold it.
     *
     * @param float $wait seconds to wait for it
     */
    public static function acquire(string $name, float $wait = 0.0): ?self
    {
        $number = 0;

        return match (lock_take($name, $wait, $number)) {
            0 => new self($number),
            1 => null,
            2 => throw new LockTimeout('The request ends while it waits for a lock'),
            3 => throw new \LogicException('Nothing can wait for a lock here: in a callback of an extension, or while code is compiled'),
            4 => throw new \RuntimeException('The requests of this process hold and wait for 16384 locks: that is the bound'),
            default => throw new \RuntimeException('There are no locks: no memory, or more than 256 processes'),
        };
    }

    public function release(): void
    {
        if ($this->held) {
            $this->held = false;
            lock_release($this->number);
        }
    }
}
