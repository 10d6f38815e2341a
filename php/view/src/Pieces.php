<?php

declare(strict_types=1);

namespace Surus\View;

use Surus\Http\Response;

/**
 * The output of code, in pieces that can be sent while the code continues.
 *
 * The code runs in a PHP Fiber, which is suspended by flush(). Its output buffer is not active meanwhile: output of
 * other code is not collected.
 */
final class Pieces
{
    /** @var \WeakMap<\Fiber<mixed, mixed, mixed, mixed>, self>|null */
    private static ?\WeakMap $of = null;

    /** The level of the output buffer that collects its output. */
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
     * The pieces as a response. An error before the first piece is thrown here.
     *
     * @param \Generator<int, string> $pieces
     */
    public static function response(\Generator $pieces, int $status): Response
    {
        $pieces->rewind();

        return Response::stream($pieces, $status, ['content-type' => 'text/html; charset=UTF-8']);
    }

    /** Passes on the output so far. Does nothing if no caller waits for pieces, or if the code has started a buffer. */
    public static function flush(): void
    {
        $fiber = \Fiber::getCurrent();
        if ($fiber !== null && (self::$of[$fiber] ?? null)?->level === ob_get_level()) {
            \Fiber::suspend();
        }
    }

    /**
     * Runs a part of the code in a separate Fiber, which may suspend itself; its flush() is also a flush() of the code
     * that has started it.
     *
     * @internal
     *
     * @param \Fiber<mixed, mixed, mixed, mixed> $part
     * @param \Closure(): bool $stop whether the part was suspended for another reason
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
