<?php

declare(strict_types=1);

namespace Surus\Routing;

/**
 * Middleware and conditions of one route, or of all routes of an application or group.
 *
 * @internal
 */
trait Conditions
{
    /** @var list<callable|object|string> */
    private array $middleware = [];

    private string $host = '';

    /**
     * Adds middleware, in this order. Independent of the order of declarations, that of the application is outermost,
     * then that of groups, then that of the route. That of the outermost application also runs for requests without a
     * route.
     *
     * @param callable|object|string ...$middleware
     */
    public function use(callable|object|string ...$middleware): static
    {
        array_push($this->middleware, ...array_values($middleware));

        return $this;
    }

    /** Only for requests to this host: `api.example.com`, `{tenant}.example.com`. */
    public function host(string $host): static
    {
        $this->host = $host;

        return $this;
    }
}
