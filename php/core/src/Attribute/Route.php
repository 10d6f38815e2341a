<?php

declare(strict_types=1);

namespace Surus\Attribute;

/** A method that handles requests to a path. */
#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::IS_REPEATABLE)]
class Route
{
    /**
     * @param string|list<string> $methods "*" for all
     * @param list<callable|object|string> $use middleware
     * @param list<callable|object|string> $middleware more middleware, after these
     * @param ?float $timeout seconds; 0 is no limit, null the configured one
     */
    public function __construct(
        public readonly string|array $methods,
        public readonly string $path,
        public readonly string $name = '',
        public readonly array $use = [],
        public readonly string $host = '',
        public readonly array $middleware = [],
        public readonly ?float $timeout = null,
    ) {
    }
}
