<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\Routing\Pattern;

/**
 * A handler, ready to be called.
 *
 * @internal
 */
final class Plan
{
    /**
     * @param callable $handler
     * @param list<Argument> $arguments
     * @param array{class-string, string}|null $target the method that gets the arguments, if it is not the handler
     */
    public function __construct(
        public readonly mixed $handler,
        public readonly array $arguments,
        public readonly Pattern $pattern,
        public readonly ?array $target,
    ) {
    }
}
