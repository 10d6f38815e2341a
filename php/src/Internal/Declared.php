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
     * @param string $origin file and line
     */
    public function __construct(
        public readonly array $methods,
        public readonly Pattern $pattern,
        public readonly mixed $handler,
        public readonly string $name,
        public readonly string $host,
        public readonly array $headers,
        public readonly array $middleware,
        public readonly string $origin,
    ) {
    }

    /** For people: its name, and where its handler is. */
    public function about(): string
    {
        $what = Origin::name($this->handler);

        return $this->name === '' ? $what : "$what ($this->name)";
    }

    /** For messages: "GET /users". */
    public function label(): string
    {
        return implode(',', $this->methods) . ' ' . $this->pattern;
    }
}
