<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\Routing\Pattern;

/**
 * A route with everything that its groups add to it.
 *
 * @internal
 */
final class Declared
{
    /**
     * @param list<string> $methods
     * @param list<string> $headers lines
     * @param list<callable|object|string> $middleware of groups and the route
     * @param ?float $timeout seconds; 0 is no limit, null the configured one
     * @param string $origin file and line
     * @param bool $isOwn whether the application has declared it; otherwise it was added for another route
     */
    public function __construct(
        public readonly array $methods,
        public readonly Pattern $pattern,
        public readonly mixed $handler,
        public readonly string $name,
        public readonly string $host,
        public readonly array $headers,
        public readonly array $middleware,
        public readonly ?float $timeout,
        public readonly string $origin,
        public readonly bool $isOwn = true,
    ) {
    }

    /**
     * For people: its handler, name and middleware; empty if the application has not declared it.
     *
     * @param list<callable|object|string> $outer middleware of the application
     */
    public function about(array $outer): string
    {
        if (!$this->isOwn) {
            return '';
        }
        $what = Origin::name($this->handler) . ($this->name === '' ? '' : " ($this->name)");
        $around = implode(', ', array_map(Origin::name(...), [...$outer, ...$this->middleware]));

        return $around === '' ? $what : "$what  < $around";
    }

    /** For messages: "GET /users". */
    public function label(): string
    {
        return implode(',', $this->methods) . ' ' . $this->pattern;
    }
}
