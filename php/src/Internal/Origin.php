<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * Places in the application's code.
 *
 * @internal
 */
final class Origin
{
    /** File and line of the call that has led here, outside of Surus. */
    public static function caller(): string
    {
        foreach (debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS, 12) as $frame) {
            if (isset($frame['file'], $frame['line']) && !str_starts_with($frame['file'], 'surus:') && !str_starts_with($frame['file'], dirname(__DIR__) . '/')) {
                return $frame['file'] . ':' . $frame['line'];
            }
        }

        return 'unknown';
    }

    public static function of(\ReflectionFunctionAbstract $function): string
    {
        return ($function->getFileName() ?: 'internal') . ':' . (int) $function->getStartLine();
    }
}
