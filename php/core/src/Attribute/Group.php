<?php

declare(strict_types=1);

namespace Surus\Attribute;

/** What the routes of a class have in common. */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class Group
{
    /**
     * @param list<callable|object|string> $use middleware
     * @param list<callable|object|string> $middleware more middleware, after these
     * @param ?float $timeout seconds; 0 is no limit, null the configured one
     */
    public function __construct(
        public readonly string $prefix = '',
        public readonly string $name = '',
        public readonly array $use = [],
        public readonly string $host = '',
        public readonly array $middleware = [],
        public readonly ?float $timeout = null,
    ) {
    }
}
