<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * A stored value with tags: it counts for as long as each of them is what it was.
 *
 * @internal
 */
final class Tagged
{
    private const PREFIX = "t\0";

    /** @param array<array-key, int> $tags what each was */
    private function __construct(public readonly mixed $value, private readonly array $tags)
    {
    }

    /**
     * What tags are now. Before the value is made: it must not outlive what it is made of.
     *
     * @param list<string> $tags
     *
     * @return array<array-key, int>
     */
    public static function now(array $tags): array
    {
        $now = [];
        foreach ($tags as $tag) {
            do {
                // Another one after each removal, whoever removes it: never what it was before.
                $found = store_get(self::PREFIX . $tag);
                $made = is_int($found) ? $found : random_int(1, PHP_INT_MAX);
            } while (!is_int($found) && !SharedMemory::done(store_set(self::PREFIX . $tag, $made, null, SharedMemory::IF_ABSENT), $tag));
            $now[$tag] = $made;
        }

        return $now;
    }

    /** @param array<array-key, int> $tags {@see Tagged::now()} */
    public static function value(mixed $value, array $tags): mixed
    {
        return $tags === [] ? $value : new self($value, $tags);
    }

    public static function invalidate(string $tag): void
    {
        SharedMemory::done(store_delete(self::PREFIX . $tag), $tag);
    }

    public function counts(): bool
    {
        foreach ($this->tags as $tag => $was) {
            if (store_get(self::PREFIX . $tag) !== $was) {
                return false;
            }
        }

        return true;
    }
}
