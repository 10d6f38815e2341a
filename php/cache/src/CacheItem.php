<?php

declare(strict_types=1);

namespace Surus\Cache;

use Psr\Cache\CacheItemInterface;

/** An item of a {@see CachePool} (PSR-6). */
final class CacheItem implements CacheItemInterface
{
    private ?float $until = null;

    /** @internal {@see CachePool::getItem()} */
    public function __construct(private readonly string $key, private mixed $value = null, private bool $isHit = false)
    {
    }

    public function getKey(): string
    {
        return $this->key;
    }

    public function get(): mixed
    {
        return $this->isHit ? $this->value : null;
    }

    public function isHit(): bool
    {
        return $this->isHit;
    }

    public function set($value): static
    {
        $this->value = $value;

        return $this;
    }

    public function expiresAt($expiration): static
    {
        $this->until = match (true) {
            $expiration === null => null,
            $expiration instanceof \DateTimeInterface => (float) $expiration->format('U.u'),
            default => throw new InvalidCacheArgument('An expiry is a DateTimeInterface or null, not ' . get_debug_type($expiration)),
        };

        return $this;
    }

    public function expiresAfter($time): static
    {
        $this->until = match (true) {
            $time === null => null,
            is_int($time) => microtime(true) + $time,
            $time instanceof \DateInterval => (float) (new \DateTimeImmutable())->add($time)->format('U.u'),
            default => throw new InvalidCacheArgument('A time to live is seconds, a DateInterval or null, not ' . get_debug_type($time)),
        };

        return $this;
    }

    /**
     * Seconds that it may be kept, 0 and less for none; null: no limit.
     *
     * @internal
     */
    public function seconds(): ?int
    {
        return $this->until === null ? null : (int) ceil($this->until - microtime(true));
    }

    /**
     * As who asks for it gets it: with the value that was set.
     *
     * @internal
     */
    public function saved(): self
    {
        $item = clone $this;
        $item->isHit = ($this->seconds() ?? 1) > 0;
        if (is_object($item->value)) {
            $item->value = clone $item->value;
        }

        return $item;
    }

    /** @internal */
    public function value(): mixed
    {
        return $this->value;
    }
}
