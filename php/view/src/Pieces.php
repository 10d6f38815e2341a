<?php

declare(strict_types=1);

namespace Surus\View;

use Surus\Http\Response;

/**
 * What code prints, in pieces that can be sent while it goes on.
 *
 * The code runs in a Fiber of PHP's own, which stops where it says flush(). While it stands still nothing is buffered: what
 * others print meanwhile is theirs.
 */
final class Pieces
{
    /** @var \WeakMap<\Fiber<mixed, mixed, mixed, mixed>, self>|null */
    private static ?\WeakMap $of = null;

    /** Of output buffers, where what it prints is collected. */
    private int $level = 0;

    private function __construct()
    {
    }

    /**
     * @param \Closure(): mixed $print
     *
     * @return \Generator<int, string>
     */
    public static function of(\Closure $print): \Generator
    {
        self::$of ??= new \WeakMap();
        $fiber = new \Fiber($print);
        $pieces = self::$of[$fiber] = new self();
        do {
            $below = ob_get_level();
            ob_start();
            $pieces->level = $below + 1;
            $text = '';
            try {
                $fiber->isStarted() ? $fiber->resume() : $fiber->start();
            } finally {
                while (ob_get_level() > $below) {
                    $text = ob_get_clean() . $text;
                }
            }
            if ($text !== '') {
                yield $text;
            }
        } while (!$fiber->isTerminated());
    }

    /**
     * As a response. What goes wrong before the first piece is thrown here.
     *
     * @param \Generator<int, string> $pieces
     */
    public static function response(\Generator $pieces, int $status): Response
    {
        $pieces->rewind();

        return Response::stream($pieces, $status, ['content-type' => 'text/html; charset=UTF-8']);
    }

    /** Lets go what was printed so far. Where nobody waits for pieces, or the code has a buffer of its own, it does nothing. */
    public static function flush(): void
    {
        $fiber = \Fiber::getCurrent();
        if ($fiber !== null && (self::$of[$fiber] ?? null)?->level === ob_get_level()) {
            \Fiber::suspend();
        }
    }

    /**
     * Runs a part of the code that stops where it wants to, in a Fiber of its own; its flush() is also one of the code
     * that has started it.
     *
     * @internal
     *
     * @param \Fiber<mixed, mixed, mixed, mixed> $part
     * @param \Closure(): bool $stop whether the part has stopped for another reason
     */
    public static function advance(\Fiber $part, \Closure $stop): void
    {
        $whole = \Fiber::getCurrent();
        if ($whole !== null && self::$of !== null && isset(self::$of[$whole])) {
            self::$of[$part] = self::$of[$whole];
        }
        $part->isStarted() ? $part->resume() : $part->start();
        while (!$part->isTerminated() && !$stop()) {
            self::flush();
            $part->resume();
        }
    }
}
