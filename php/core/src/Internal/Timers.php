<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\BootError;
use Surus\Log;

/**
 * Declares the timers of an application while it boots. The server says when each runs (serve/coroutine/timers.rs).
 *
 * @internal
 */
final class Timers
{
    private const TIMER_AFTER = 0;
    private const TIMER_EVERY = 1;
    private const TIMER_CRON = 2;
    private const TIMER_ONCE = 3;

    /** The shortest time between two runs; the server's clock for this is not finer. */
    private const SHORTEST = 0.01;

    public static function after(float $seconds, callable $job, bool $reloads = true): void
    {
        if (!($seconds >= 0 && $seconds < 1e9)) {
            throw at_caller(new BootError("Surus\\after(): Argument #1 (\$seconds) must be a time from 0 on, $seconds given"));
        }
        self::add("after $seconds s", $reloads ? self::TIMER_AFTER : self::TIMER_ONCE, $seconds, $job, null);
    }

    public static function every(float $seconds, callable $job): void
    {
        $shortest = self::SHORTEST;
        if (!($seconds >= $shortest && $seconds < 1e9)) {
            throw at_caller(new BootError("Surus\\every(): Argument #1 (\$seconds) must be at least $shortest, $seconds given"));
        }
        self::add("every $seconds s", self::TIMER_EVERY, $seconds, $job, null);
    }

    public static function cron(string $expression, callable $job): void
    {
        try {
            $cron = Cron::parse($expression);
        } catch (BootError $error) {
            throw at_caller($error);
        }
        self::add("cron $expression", self::TIMER_CRON, $cron->next(\time()), $job, $cron);
    }

    private static function add(string $about, int $kind, float $seconds, callable $job, ?Cron $cron): void
    {
        $place = at_caller(new \Exception());
        $about .= ' at ' . \basename($place->getFile()) . ':' . $place->getLine();
        $job = $job(...);
        timer_add($about, $kind, $seconds, static function (bool $isDue) use ($about, $job, $cron): void {
            try {
                if ($cron !== null) {
                    timer_next($cron->next(\time()));
                }
                if ($isDue) {
                    $job();
                }
            } catch (\Throwable $error) {
                (new Log('timers'))->error('A timer has failed: {timer}', ['timer' => $about, 'exception' => $error]);
            }
            if ($cron !== null) {
                timer_next($cron->next(\time()));
            }
        });
    }
}
