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
    /** File and line of the innermost caller outside of Surus. */
    public static function caller(): string
    {
        foreach (debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS, 12) as $frame) {
            if (isset($frame['file'], $frame['line']) && !str_starts_with($frame['file'], 'surus:') && !str_starts_with($frame['file'], dirname(__DIR__) . '/')) {
                return $frame['file'] . ':' . $frame['line'];
            }
        }

        return 'unknown';
    }

    /** The name of a handler or a middleware: a class, a function, or the place of a closure. */
    public static function name(mixed $what): string
    {
        if ($what instanceof \Closure) {
            $function = new \ReflectionFunction($what);
            $class = $function->getClosureScopeClass()?->getName();

            return str_contains($function->getName(), '{closure')
                ? basename((string) $function->getFileName()) . ':' . $function->getStartLine()
                : ($class === null ? '' : "$class::") . $function->getName();
        }
        if (is_array($what)) {
            return (is_object($what[0]) ? $what[0]::class : $what[0]) . '::' . $what[1];
        }

        if ($what instanceof SocketRoute) {
            return 'WebSocket: ' . self::name($what->handler);
        }
        if ($what instanceof Page) {
            return basename($what->file);
        }

        return is_object($what) ? $what::class : (string) $what;
    }

    /**
     * File and line of a declaration; for a parameter also its name.
     *
     * @param \ReflectionFunctionAbstract|\ReflectionClass<object>|\ReflectionParameter $what
     */
    public static function of(\ReflectionFunctionAbstract|\ReflectionClass|\ReflectionParameter $what): string
    {
        if ($what instanceof \ReflectionParameter) {
            return self::of($what->getDeclaringFunction()) . ": parameter \${$what->getName()}";
        }
        $file = $what->getFileName();

        return $file === false ? $what->getName() . ' of PHP' : $file . ':' . (int) $what->getStartLine();
    }
}
