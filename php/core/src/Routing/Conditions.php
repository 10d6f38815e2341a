<?php

declare(strict_types=1);

namespace Surus\Routing;

use Surus\BootError;
use Surus\Internal\Origin;

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

    private ?float $timeout = null;

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

    /**
     * The time for a request, in place of `request_timeout` of the configuration. A response that is being streamed has
     * `stream_timeout` instead.
     *
     * @param ?float $seconds 0 is no limit, null that of the group or the configuration
     *
     * @throws BootError if it is negative
     */
    public function timeout(?float $seconds): static
    {
        if ($seconds !== null && !($seconds >= 0 && is_finite($seconds))) {
            throw new BootError(Origin::caller() . ": the timeout of a route is a number of seconds from 0, which is no limit: it is $seconds");
        }
        $this->timeout = $seconds;

        return $this;
    }
}
