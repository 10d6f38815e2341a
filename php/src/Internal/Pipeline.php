<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\BootError;
use Surus\Container;
use Surus\Http\Middleware;
use Surus\Http\Request;
use Surus\Http\Response;
use Surus\Psr\Bridge;

/**
 * Middleware around a handler, put together at boot.
 *
 * @internal
 */
final class Pipeline
{
    /** @var array<string, object> by class name: one object for all routes */
    private array $made = [];

    public function __construct(private readonly Container $container, private readonly Errors $errors)
    {
    }

    /**
     * What the server calls with the request instead of the handler; null if nothing is around it.
     *
     * @param list<callable|object|string> $outer of the application: they see errors as responses
     * @param list<callable|object|string> $inner of groups and the route
     *
     * @return ?\Closure(Request): Response
     */
    public function make(array $outer, array $inner, string $origin): ?\Closure
    {
        if ($outer === [] && $inner === []) {
            return null;
        }
        $next = static fn (Request $request): Response => Response::of(call_handler($request));
        foreach (array_reverse($inner) as $middleware) {
            $next = $this->around($middleware, $next, $origin);
        }
        if ($outer === []) {
            return $next;
        }
        $errors = $this->errors;
        $next = static function (Request $request) use ($next, $errors): Response {
            try {
                return $next($request);
            } catch (\Throwable $exception) {
                return $errors->answer($exception, $request);
            }
        };
        foreach (array_reverse($outer) as $middleware) {
            $next = $this->around($middleware, $next, $origin);
        }

        return $next;
    }

    /** A middleware as an object or a callable. */
    public function resolve(callable|object|string $middleware, string $origin): object
    {
        if (is_string($middleware) && class_exists($middleware)) {
            return $this->made[$middleware] ??= $this->container->get($middleware);
        }
        if (is_callable($middleware)) {
            return is_object($middleware) ? $middleware : \Closure::fromCallable($middleware);
        }
        if (is_object($middleware)) {
            return $middleware;
        }
        throw new BootError("$origin: the middleware \"$middleware\" is neither a class nor a function");
    }

    /** @return \Closure(Request): Response */
    private function around(callable|object|string $middleware, \Closure $next, string $origin): \Closure
    {
        $middleware = $this->resolve($middleware, $origin);
        if ($middleware instanceof Middleware) {
            return static fn (Request $request): Response => Response::of($middleware->handle($request, $next));
        }
        if (Bridge::isMiddleware($middleware)) {
            return (new Bridge($this->container))->middleware($middleware, $next);
        }
        if (is_callable($middleware)) {
            return static fn (Request $request): Response => Response::of($middleware($request, $next));
        }
        throw new BootError("$origin: " . $middleware::class . ' is no middleware');
    }
}
