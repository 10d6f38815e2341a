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
 * Middleware around a handler, composed at boot.
 *
 * @internal
 */
final class Pipeline
{
    /** @var array<string, object> middleware by class name: one object for all routes */
    private array $made = [];

    public function __construct(private readonly Container $container, private readonly Errors $errors)
    {
    }

    /**
     * The function that the server calls with the request instead of the handler; null without middleware. Each layer
     * turns an exception into a response, so that outer middleware sees every response.
     *
     * @param list<callable|object|string> $middleware the outermost first
     * @param string $handler for errors
     *
     * @return ?\Closure(Request): Response
     */
    public function make(array $middleware, string $origin, string $handler): ?\Closure
    {
        if ($middleware === []) {
            return null;
        }
        $next = $this->layer(static fn (Request $request): mixed => call_handler($request), null, $handler);
        foreach (array_reverse($middleware) as $one) {
            $next = $this->layer($this->callable($one, $origin), $next, 'The middleware ' . Origin::name($one));
        }

        return $next;
    }

    /** A middleware as an object or a callable. */
    public function resolve(callable|object|string $middleware, string $origin): object
    {
        if (is_string($middleware) && class_exists($middleware)) {
            try {
                return $this->made[$middleware] ??= $this->container->get($middleware);
            } catch (BootError $error) {
                throw new BootError("$origin: the middleware $middleware cannot be made: {$error->getMessage()}");
            }
        }
        if (is_callable($middleware)) {
            return is_object($middleware) ? $middleware : \Closure::fromCallable($middleware);
        }
        if (is_object($middleware)) {
            return $middleware;
        }
        throw new BootError("$origin: the middleware \"$middleware\" is neither a class nor a function");
    }

    /** @return callable(Request, ?\Closure): mixed */
    private function callable(callable|object|string $middleware, string $origin): callable
    {
        $middleware = $this->resolve($middleware, $origin);
        if ($middleware instanceof Middleware) {
            return $middleware->handle(...);
        }
        if (Bridge::isMiddleware($middleware)) {
            return (new Bridge($this->container))->middleware($middleware);
        }
        if (is_callable($middleware)) {
            return $middleware;
        }
        throw new BootError("$origin: " . $middleware::class . ' is no middleware');
    }

    /** @return \Closure(Request): Response */
    private function layer(callable $call, ?\Closure $next, string $name): \Closure
    {
        $errors = $this->errors;

        return static function (Request $request) use ($call, $next, $errors, $name): Response {
            $level = ob_get_level();
            try {
                $result = $call($request, $next);
                if ($result === null && $next !== null) {
                    throw new \TypeError("$name returned nothing: return what \$next(\$request) gives, or another response");
                }

                return Response::of($result, $name);
            } catch (\Throwable $exception) {
                // Earlier output belongs to a page that was not completed.
                while (ob_get_level() > $level && ob_end_clean()) {
                }
                if (ob_get_level() > 0) {
                    ob_clean();
                }
                $request->setAttribute(\Throwable::class, $exception);

                return $errors->answer($exception, $request);
            }
        };
    }
}
