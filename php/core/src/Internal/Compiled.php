<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * What a script returned, as the server calls it: csrc/app/boot.c reads these properties.
 *
 * @internal
 */
final class Compiled
{
    /**
     * @param list<CompiledRoute> $routes
     * @param \Closure(\Throwable, \Surus\Http\Request): mixed $errors what answers exceptions
     */
    public function __construct(
        public readonly array $routes,
        public readonly \Closure $errors,
    ) {
    }
}
