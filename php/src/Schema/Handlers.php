<?php

declare(strict_types=1);

namespace Surus\Schema;

/**
 * @internal
 */
final class Handlers
{
    /** The function behind a handler of any kind. */
    public static function reflect(mixed $handler): \ReflectionFunctionAbstract
    {
        if ($handler instanceof \Closure) {
            return new \ReflectionFunction($handler);
        }
        if (\is_string($handler) && str_contains($handler, '::')) {
            $handler = explode('::', $handler, 2);
        }
        if (\is_array($handler)) {
            return new \ReflectionMethod($handler[0], $handler[1]);
        }
        if (\is_object($handler) || class_exists($handler)) {
            return new \ReflectionMethod($handler, method_exists($handler, '__invoke') ? '__invoke' : 'handle');
        }

        return new \ReflectionFunction($handler);
    }
}
