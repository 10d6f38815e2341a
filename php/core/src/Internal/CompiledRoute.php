<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * A route as the server takes it: csrc/app/boot.c reads these properties.
 *
 * @internal
 */
final class CompiledRoute
{
    /**
     * @param string $methods separated by commas, or "*"; "404" or "405" without a pattern, for the requests of which that is
     *     the answer
     * @param string $pattern empty: every request, or those of "404" or "405"
     * @param string $headers one `name` or `name: value` a line
     * @param callable $handler
     * @param list<Argument> $arguments of the handler
     * @param ?\Closure $pipeline middleware around the handler, called instead with the request
     * @param array{class-string, string}|null $target the method that the application has written, if it is not the handler
     * @param string $about for people: its name and handler
     * @param bool $isGuarded input that is refused goes through PHP, too
     * @param string $origin file and line where it is declared
     */
    public function __construct(
        public readonly string $methods,
        public readonly string $pattern,
        public readonly string $host,
        public readonly string $headers,
        public readonly mixed $handler,
        public readonly array $arguments,
        public readonly ?\Closure $pipeline,
        public readonly ?array $target,
        public readonly string $about,
        public readonly bool $isGuarded,
        public readonly string $origin,
    ) {
    }
}
