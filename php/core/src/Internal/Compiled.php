<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * The application in the form that the server calls: csrc/app/boot.c reads these properties.
 *
 * @internal
 */
final class Compiled
{
    /**
     * @param list<CompiledRoute> $routes
     * @param \Closure(\Throwable, \Surus\Http\Request): mixed $errors makes the response to an exception
     */
    public function __construct(
        public readonly array $routes,
        public readonly \Closure $errors,
    ) {
    }
}
