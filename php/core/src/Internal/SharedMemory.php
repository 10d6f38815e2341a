<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\StoreException;

/**
 * What the functions of the store return, and its errors.
 *
 * @internal
 */
final class SharedMemory
{
    public const DONE = 0;
    public const NOT = 1;
    public const TOO_LARGE = 2;
    public const FULL = 3;
    public const UNAVAILABLE = 4;
    public const OTHER = 5;
    public const OVERFLOW = 6;

    public const ALWAYS = 0;
    public const IF_ABSENT = 1;
    public const IF_PRESENT = 2;
    public const IF_SAME = 3;

    /** Whether it was done; false: its condition does not hold. */
    public static function done(int $outcome, string $key): bool
    {
        if ($outcome <= self::NOT) {
            return $outcome === self::DONE;
        }
        $key = '"' . substr($key, 0, 64) . '"';

        throw new StoreException(match ($outcome) {
            self::TOO_LARGE => "The value of $key is too large: one value may have a fiftieth of the setting shared_memory, and what is never removed a five-hundredth",
            self::FULL => "There is no room for $key: what is never removed may have a quarter of the setting shared_memory",
            self::OTHER => "The value of $key is not an integer",
            self::OVERFLOW => "The sum for $key is larger than an integer",
            default => "$key cannot be stored: there is no shared memory (the setting shared_memory), or another process holds it",
        });
    }

    /** The prefix of the keys of a name; different kinds of use have different first bytes. */
    public static function prefix(string $kind, string $name): string
    {
        if (strlen($name) > 64 || str_contains($name, "\0")) {
            throw new \InvalidArgumentException('A name has up to 64 bytes, and no NUL byte');
        }

        return "$kind$name\0";
    }

    /** @return ?float seconds */
    public static function seconds(null|int|float $ttl): ?float
    {
        return $ttl === null || $ttl > 0 ? $ttl : throw new \InvalidArgumentException('A time to live is more than 0 seconds, or null for no limit');
    }
}
