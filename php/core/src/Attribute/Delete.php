<?php

declare(strict_types=1);

namespace Surus\Attribute;

/** A method that handles DELETE requests to a path. */
#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::IS_REPEATABLE)]
final class Delete extends Route
{
    /**
     * @param list<callable|object|string> $use middleware
     * @param list<callable|object|string> $middleware more middleware, after these
     * @param ?float $timeout seconds; 0 is no limit, null the configured one
     */
    public function __construct(string $path, string $name = '', array $use = [], string $host = '', array $middleware = [], ?float $timeout = null)
    {
        parent::__construct('DELETE', $path, $name, $use, $host, $middleware, $timeout);
    }
}
