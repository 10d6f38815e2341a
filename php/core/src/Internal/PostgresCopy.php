<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * COPY in both directions.
 *
 * @internal
 */
final class PostgresCopy
{
    /** @param iterable<string|list<mixed>> $pieces */
    public static function from(int $transaction, string $sql, iterable $pieces): int
    {
        $number = postgres_copy($transaction, $sql, true);
        $isOver = false;
        try {
            foreach ($pieces as $piece) {
                if (!postgres_copy_put($number, is_array($piece) ? self::line($piece) : (string) $piece)) {
                    break;
                }
            }
            $isOver = true;
        } finally {
            if (!$isOver) {
                self::giveUp($number);
            }
        }

        return postgres_copy_end($number, true);
    }

    /** @return \Generator<int, string> */
    public static function to(int $transaction, string $sql): \Generator
    {
        $number = postgres_copy($transaction, $sql, false);
        $isOver = false;
        try {
            while (($piece = postgres_copy_take($number)) !== null) {
                yield $piece;
            }
            $isOver = true;
        } finally {
            if (!$isOver) {
                self::giveUp($number);
            }
        }
        postgres_copy_end($number, true);
    }

    private static function giveUp(int $number): void
    {
        try {
            postgres_copy_end($number, false);
        } catch (\RuntimeException | \LogicException) {
            // That is what was wanted.
        }
    }

    /**
     * A row in COPY's text format.
     *
     * @param array<mixed> $values
     */
    private static function line(array $values): string
    {
        $escapes = ['\\' => '\\\\', "\t" => '\t', "\n" => '\n', "\r" => '\r'];
        $texts = array_map(static fn (mixed $value): string => match (true) {
            $value === null => '\N',
            is_bool($value) => $value ? 't' : 'f',
            $value instanceof \BackedEnum => strtr((string) $value->value, $escapes),
            $value instanceof \DateTimeInterface => $value->format('Y-m-d\TH:i:s.uP'),
            is_scalar($value) || $value instanceof \Stringable => strtr((string) $value, $escapes),
            default => throw new \TypeError('COPY takes null, booleans, numbers, strings, dates, backed enums and Stringable, '
                . get_debug_type($value) . ' given'),
        }, $values);

        return implode("\t", $texts) . "\n";
    }
}
