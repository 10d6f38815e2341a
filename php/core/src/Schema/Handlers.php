<?php

declare(strict_types=1);

namespace Surus\Schema;

use Surus\Psr\Bridge;

/**
 * Handlers of all kinds.
 *
 * @internal
 */
final class Handlers
{
    /**
     * What is called for a handler, defined only here: a closure, the name of a function, or a method. Null: it cannot
     * be called.
     *
     * @return \Closure|callable-string|array{class-string|object, string}|null
     */
    public static function target(mixed $handler): \Closure|string|array|null
    {
        if ($handler instanceof \Closure) {
            return $handler;
        }
        if (\is_object($handler) || (\is_string($handler) && class_exists($handler))) {
            $handler = [$handler, Bridge::isHandler($handler) ? 'handle' : '__invoke'];
        } elseif (\is_string($handler) && str_contains($handler, '::')) {
            $handler = explode('::', $handler, 2);
        }
        if (\is_string($handler)) {
            return \function_exists($handler) ? $handler : null;
        }
        $named = \is_array($handler) && array_is_list($handler) && \count($handler) === 2 && \is_string($handler[1])
            && (\is_object($handler[0]) || \is_string($handler[0]));

        return $named && method_exists($handler[0], $handler[1]) ? $handler : null;
    }

    /** The function behind a handler that can be called. */
    public static function reflect(mixed $handler): \ReflectionFunctionAbstract
    {
        $target = self::target($handler);

        return match (true) {
            \is_array($target) => new \ReflectionMethod($target[0], $target[1]),
            $target !== null => new \ReflectionFunction($target),
            default => throw new Undescribable(get_debug_type($handler) . ' cannot be called'),
        };
    }
}
