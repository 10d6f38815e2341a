<?php

declare(strict_types=1);

namespace Surus\Http;

/** @internal what a client accepts (RFC 9110, 12.5) */
final class Negotiation
{
    /** From 0 to 1000 thousandths; the most specific range that fits decides. */
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

    /** @param non-empty-list<string> $languages */
    public static function language(string $accept, array $languages): string
    {
        [$best, $most] = [$languages[0], 0];
        foreach (self::items($accept) as [$range, $quality]) {
            foreach ($languages as $language) {
                $fits = strcasecmp($language, $range) === 0 || stripos($language, "$range-") === 0 || stripos($range, "$language-") === 0;
                if ($fits && $quality > $most) {
                    [$best, $most] = [$language, $quality];
                }
            }
        }

        return $best;
    }

    /** @return list<array{string, int}> */
    private static function items(string $header): array
    {
        $items = [];
        // A header is bounded, and so is what is made of it.
        foreach (array_slice(explode(',', strtolower($header)), 0, 64) as $item) {
            $parts = array_map(trim(...), explode(';', $item));
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

    /** Of "0.5"; what is malformed is 0. More than three decimals are more than HTTP knows: they are cut off. */
    private static function thousandths(string $text): int
    {
        return match (1) {
            preg_match('/^1(\.0*)?$/D', $text) => 1000,
            preg_match('/^(0\.?|0?\.(\d+))$/D', $text, $found) => (int) substr(($found[2] ?? '') . '000', 0, 3),
            default => 0,
        };
    }
}
