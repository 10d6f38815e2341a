<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * A route in the form that the server uses: csrc/app/boot.c reads these properties.
 *
 * @internal
 */
final class CompiledRoute
{
    /**
     * @param string $methods separated by commas, or "*"; "404" or "405" (no pattern): for requests with this status
     * @param string $pattern empty: every request, or those of "404" or "405"
     * @param string $headers one `name` or `name: value` per line
     * @param callable $handler
     * @param list<Argument> $arguments of the handler
     * @param ?\Closure $pipeline middleware and the handler, called with the request instead of the handler
     * @param array{class-string, string}|null $target the method of the application, if it is not the handler itself
     * @param string $about a description for people: its name and handler
     * @param float $timeout seconds; 0 is no limit, negative the configured one
     * @param bool $isGuarded PHP runs for refused input, too
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
        public readonly float $timeout,
        public readonly bool $isGuarded,
        public readonly string $origin,
    ) {
    }
}
