<?php

declare(strict_types=1);

namespace Surus;

/** A number that all workers of the server share. It is never removed to make room, and ends with the server. */
final class Counter
{
    private readonly Store $store;

    public function __construct(private readonly string $name)
    {
        $this->store = new Store('counters');
    }

    public function get(): int
    {
        $value = $this->store->get($this->name, 0);

        return is_int($value) ? $value : 0;
    }

    /** The number after that. */
    public function increment(int $by = 1): int
    {
        return $this->store->increment($this->name, $by);
    }

    /** The number after that. */
    public function decrement(int $by = 1): int
    {
        return $this->store->decrement($this->name, $by);
    }

    /** Begins again at 0. */
    public function reset(): void
    {
        $this->store->delete($this->name);
    }
}
