<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\BootError;

/**
 * A time of the calendar, as crontab(5) writes it: minute, hour, day of the month, month, day of the week.
 *
 * @internal
 */
final class Cron
{
    private const FIELDS = [
        ['minute', 0, 59, []],
        ['hour', 0, 23, []],
        ['day of the month', 1, 31, []],
        ['month', 1, 12, ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']],
        ['day of the week', 0, 7, ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']],
    ];

    private const NAMES = [
        '@hourly' => '0 * * * *',
        '@daily' => '0 0 * * *',
        '@midnight' => '0 0 * * *',
        '@weekly' => '0 0 * * 0',
        '@monthly' => '0 0 1 * *',
        '@yearly' => '0 0 1 1 *',
        '@annually' => '0 0 1 1 *',
    ];

    /** A day that comes every 29 February on a certain day of the week is at most this far away. */
    private const YEARS = 41;

    /** @param list<array<int, true>> $fields the numbers of each */
    private function __construct(
        private readonly string $expression,
        private readonly array $fields,
        private readonly bool $anyDay,
        private readonly bool $anyWeekday,
    ) {
    }

    /** @throws BootError that names the field that is wrong */
    public static function parse(string $expression): self
    {
        $text = self::NAMES[\strtolower(\trim($expression))] ?? $expression;
        $parts = \preg_split('/\s+/', $text, -1, \PREG_SPLIT_NO_EMPTY) ?: [];
        if (\count($parts) !== 5) {
            $count = \count($parts);
            throw new BootError("Surus\\cron(\"$expression\"): an expression has five fields, minute hour day month weekday; this has $count");
        }
        $fields = [];
        foreach ($parts as $i => $part) {
            $fields[] = self::field($expression, $part, ...self::FIELDS[$i]);
        }
        if (isset($fields[4][7])) {
            $fields[4][0] = true;
        }
        $cron = new self($expression, $fields, $parts[2][0] === '*', $parts[4][0] === '*');
        $cron->next(\time());

        return $cron;
    }

    /**
     * The first such minute after a time, in the time zone that is set. Where clocks go forward or back, an hour is left out or
     * comes twice.
     *
     * @param int $after seconds since 1970
     * @throws BootError if there is none
     */
    public function next(int $after): int
    {
        [$minutes, $hours, , $months] = $this->fields;
        $zone = new \DateTimeZone(\date_default_timezone_get());
        $at = (new \DateTimeImmutable('@' . ($after - $after % 60 + 60)))->setTimezone($zone);
        $last = (int) $at->format('Y') + self::YEARS;
        while ((int) $at->format('Y') < $last) {
            [$minute, $hour, $day, $month, $weekday] = \array_map('intval', \explode(' ', $at->format('i G j n w')));
            if (!isset($months[$month])) {
                $at = $at->modify('first day of next month')->setTime(0, 0);
            } elseif (!$this->hasDay($day, $weekday)) {
                $at = $at->modify('+1 day')->setTime(0, 0);
            } elseif (!isset($hours[$hour])) {
                $at = $at->setTimestamp($at->getTimestamp() + 3600 - $minute * 60);
            } elseif (!isset($minutes[$minute])) {
                $at = $at->setTimestamp($at->getTimestamp() + 60);
            } else {
                return $at->getTimestamp();
            }
        }
        throw new BootError("Surus\\cron(\"$this->expression\"): there is no such day");
    }

    /** As in every cron: where both kinds of days are named, either is enough. */
    private function hasDay(int $day, int $weekday): bool
    {
        $isDay = isset($this->fields[2][$day]);
        $isWeekday = isset($this->fields[4][$weekday]);

        return $this->anyDay || $this->anyWeekday ? $isDay && $isWeekday : $isDay || $isWeekday;
    }

    /**
     * @param list<string> $names of the numbers, from the first on
     * @return array<int, true>
     */
    private static function field(string $expression, string $text, string $name, int $first, int $last, array $names): array
    {
        $numbers = [];
        foreach (\explode(',', $text) as $part) {
            if (!\preg_match('~^(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d+))?$~D', $part, $found, \PREG_UNMATCHED_AS_NULL)) {
                throw self::wrong($expression, $name, $part, $first, $last);
            }
            [, $all, $from, $to, $step] = $found + [null, null, null, null, null];
            $low = $all !== null ? $first : self::number($from, $names, $first);
            $high = $all !== null || ($to === null && $step !== null) ? $last : self::number($to ?? $from, $names, $first);
            $step = $step === null ? 1 : (int) $step;
            if ($low === null || $high === null || $low < $first || $high > $last || $low > $high || $step < 1) {
                throw self::wrong($expression, $name, $part, $first, $last);
            }
            foreach (\range($low, $high, \min($step, \max($high - $low, 1))) as $number) {
                if (($number - $low) % $step === 0) {
                    $numbers[$number] = true;
                }
            }
        }

        return $numbers;
    }

    /** @param list<string> $names */
    private static function number(?string $text, array $names, int $first): ?int
    {
        $named = \array_search(\strtolower((string) $text), $names, true);

        return match (true) {
            $named !== false => $named + $first,
            \ctype_digit((string) $text) && \strlen((string) $text) < 4 => (int) $text,
            default => null,
        };
    }

    private static function wrong(string $expression, string $name, string $part, int $first, int $last): BootError
    {
        return new BootError("Surus\\cron(\"$expression\"): the $name \"$part\" is none: numbers from $first to $last, lists 1,2, ranges 1-5, steps */2");
    }
}
