<?php

declare(strict_types=1);

namespace Surus\Tests\Timers;

use PHPUnit\Framework\TestCase;
use Surus\BootError;
use Surus\Internal\Cron;

final class CronTest extends TestCase
{
    private string $zone;

    protected function setUp(): void
    {
        $this->zone = date_default_timezone_get();
        date_default_timezone_set('Europe/Vienna');
    }

    protected function tearDown(): void
    {
        date_default_timezone_set($this->zone);
    }

    /** @return iterable<string, array{string, string, string}> */
    public static function times(): iterable
    {
        $times = [
            ['* * * * *', '2026-03-28 12:34:56', '2026-03-28 12:35'],
            ['* * * * *', '2026-03-28 12:34:00', '2026-03-28 12:35'],
            ['*/5 * * * *', '2026-03-28 12:34:56', '2026-03-28 12:35'],
            ['5/10 * * * *', '2026-03-28 12:36:00', '2026-03-28 12:45'],
            ['*/70 * * * *', '2026-03-28 12:00:00', '2026-03-28 13:00'],
            ['59 23 31 12 *', '2026-12-31 23:59:30', '2027-12-31 23:59'],
            ['0 0 31 * *', '2026-04-01 00:00:00', '2026-05-31 00:00'],
            ['0 0 29 feb *', '2026-03-28 12:00:00', '2028-02-29 00:00'],
            ['15,45 9-17 * * mon-fri', '2026-03-27 17:45:00', '2026-03-30 09:15'],
            ['0 0 * * 7', '2026-03-27 17:45:00', '2026-03-29 00:00'],
            ['0 0 13 * FRI', '2026-03-28 00:00:00', '2026-04-03 00:00'],
            ['0 4 */2 * 1', '2026-03-28 00:00:00', '2026-04-13 04:00'],
            ['@daily', '2026-03-28 00:00:00', '2026-03-29 00:00'],
            // The clocks go forward at 2:00, and back at 3:00.
            ['30 2 * * *', '2026-03-28 12:00:00', '2026-03-30 02:30'],
            ['30 3 * * *', '2026-03-28 12:00:00', '2026-03-29 03:30'],
            ['30 2 * * *', '2026-10-24 12:00:00', '2026-10-25 02:30'],
        ];
        foreach ($times as $time) {
            yield "$time[0] after $time[1]" => $time;
        }
    }

    /** @dataProvider times */
    public function testNextTime(string $expression, string $after, string $expected): void
    {
        $next = Cron::parse($expression)->next((int) strtotime($after));
        self::assertSame($expected, date('Y-m-d H:i', $next));
    }

    public function testAnHourThatComesTwiceDoes(): void
    {
        $cron = Cron::parse('30 2 * * *');
        $first = $cron->next((int) strtotime('2026-10-24 12:00:00'));
        self::assertSame(3600, $cron->next($first) - $first);
    }

    /** @return iterable<string, array{string, string}> */
    public static function mistakes(): iterable
    {
        $mistakes = [
            ['', 'this has 0'],
            ['* * * *', 'this has 4'],
            ['60 * * * *', 'the minute "60" is none: numbers from 0 to 59'],
            ['*/0 * * * *', 'the minute "*/0"'],
            ['5-1 * * * *', 'the minute "5-1"'],
            ['1,,2 * * * *', 'the minute ""'],
            ['99999999999999999999 * * * *', 'the minute "99999999999999999999"'],
            ['* 24 * * *', 'the hour "24"'],
            ['* * 0 * *', 'the day of the month "0"'],
            ['* * * foo *', 'the month "foo"'],
            ['* * * * 8', 'the day of the week "8"'],
            ["* * * * 1\n2", 'this has 6'],
            ['0 0 30 feb *', 'there is no such day'],
            ['@sometimes', 'this has 1'],
        ];
        foreach ($mistakes as $mistake) {
            yield $mistake[0] => $mistake;
        }
    }

    /** @dataProvider mistakes */
    public function testMistakesNameTheField(string $expression, string $message): void
    {
        $this->expectException(BootError::class);
        $this->expectExceptionMessage($message);
        Cron::parse($expression);
    }
}
