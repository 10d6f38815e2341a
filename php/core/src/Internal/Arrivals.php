<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * Tasks that have completed, in this order, for code that waits for some of them.
 *
 * @internal
 */
final class Arrivals
{
    private readonly int $waiter;

    /** @var list<array-key> */
    private array $keys = [];

    private int $next = 0;

    public function __construct()
    {
        $this->waiter = job_number();
    }

    public function note(int|string $key): void
    {
        $this->keys[] = $key;
        job_wake($this->waiter);
    }

    /**
     * The key of the next one, which is waited for.
     *
     * @param float|null $until not longer than this time, in seconds of Arrivals::now(): null then
     */
    public function next(?float $until = null): int|string|null
    {
        while ($this->next >= \count($this->keys)) {
            $left = $until === null ? null : $until - self::now();
            if ($left !== null && $left <= 0) {
                return null;
            }
            job_wait($left);
        }
        return $this->keys[$this->next++];
    }

    public static function now(): float
    {
        return \hrtime(true) / 1e9;
    }
}
