<?php

declare(strict_types=1);

namespace Surus\Http;

/** @internal what a client accepts (RFC 9110, 12.5) */
final class Negotiation
{
    /** From 0 to 1000 thousandths; the most specific range that matches decides. */
    public static function quality(string $accept, string $type): int
    {
        if (trim($accept) === '') {
            return 1000;
        }
        $type = strtolower($type);
        [$quality, $specific] = [0, -1];
        foreach (self::items($accept) as [$range, $q]) {
            $rank = match (true) {
                $range === $type => 2,
                $range === explode('/', $type)[0] . '/*' => 1,
                $range === '*/*' => 0,
                default => -1,
            };
            if ($rank > $specific) {
                [$quality, $specific] = [$q, $rank];
            }
        }

        return $quality;
    }

    /** @param list<string> $types */
    public static function best(string $accept, array $types): ?string
    {
        [$best, $most] = [null, 0];
        foreach ($types as $type) {
            $quality = self::quality($accept, $type);
            if ($quality > $most) {
                [$best, $most] = [$type, $quality];
            }
        }

        return $best;
    }

    /**
     * The preferred language; of languages with the same quality, the first one in the header.
     *
     * @param non-empty-list<string> $languages
     */
    public static function language(string $accept, array $languages): string
    {
        $items = self::items($accept);
        [$best, $most, $first] = [$languages[0], 0, 0];
        foreach ($languages as $language) {
            [$quality, $at] = self::likes($items, strtolower($language));
            if ($quality > $most || ($quality === $most && $quality > 0 && $at < $first)) {
                [$best, $most, $first] = [$language, $quality, $at];
            }
        }

        return $best;
    }

    /**
     * The quality of a language, and the item that decides it: the most specific one that matches, or `*`.
     *
     * @param list<array{string, int}> $items
     *
     * @return array{int, int}
     */
    private static function likes(array $items, string $language): array
    {
        [$quality, $at, $specific] = [0, 0, -1];
        foreach ($items as $i => [$range, $q]) {
            $rank = match (true) {
                $range === $language => PHP_INT_MAX,
                str_starts_with($language, "$range-") => 1 + strlen($range),
                str_starts_with($range, "$language-") => 1,
                $range === '*' => 0,
                default => -1,
            };
            // Of ranges that are only related (en-US and en-GB for en), the best one counts.
            if ($rank > $specific || ($rank === 1 && $specific === 1 && $q > $quality)) {
                [$quality, $at, $specific] = [$q, $i, $rank];
            }
        }

        return [$quality, $at];
    }

    /** @return list<array{string, int}> */
    private static function items(string $header): array
    {
        $items = [];
        // Limit the work for long headers.
        foreach (array_slice(self::split(',', strtolower($header)), 0, 64) as $item) {
            $parts = array_map(trim(...), self::split(';', $item));
            $quality = 1000;
            foreach (array_slice($parts, 1) as $parameter) {
                if (str_starts_with($parameter, 'q=')) {
                    $quality = self::thousandths(substr($parameter, 2));
                    break;
                }
            }
            $items[] = [$parts[0], $quality];
        }

        return $items;
    }

    /**
     * Splits the text, but not in quoted strings. An unterminated string extends to the end of the text.
     *
     * @return non-empty-list<string>
     */
    private static function split(string $at, string $text): array
    {
        if (!str_contains($text, '"')) {
            return explode($at, $text);
        }

        return preg_split('/"(?:[^"\\\\]|\\\\.?)*+(?:"|$)(*SKIP)(*F)|' . $at . '/s', $text) ?: [$text];
    }

    /** "0.5" is 500; malformed values are 0. HTTP allows three decimals: further ones are cut off. */
    private static function thousandths(string $text): int
    {
        return match (1) {
            preg_match('/^1(\.0*)?$/D', $text) => 1000,
            preg_match('/^(0\.?|0?\.(\d+))$/D', $text, $found) => (int) substr(($found[2] ?? '') . '000', 0, 3),
            default => 0,
        };
    }
}
