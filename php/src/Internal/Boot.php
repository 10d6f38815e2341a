<?php

declare(strict_types=1);

namespace Surus\Internal;

use Psr\EventDispatcher\EventDispatcherInterface;
use Psr\EventDispatcher\ListenerProviderInterface;
use Psr\Log\LoggerInterface;
use Surus\App;
use Surus\BootError;
use Surus\Container;
use Surus\Events\Dispatcher;
use Surus\Events\Listeners;
use Surus\Http\HttpException;
use Surus\Http\Request;
use Surus\Psr\Bridge;
use Surus\Routing\Pattern;

/**
 * From what a script returned to what the server calls. Everything that needs reflection happens here.
 *
 * @internal csrc/application.c calls it once per boot
 */
final class Boot
{
    /**
     * The routes as [methods, pattern, host, headers, handler, arguments, pipeline, target, about, guarded, origin], and what
     * answers exceptions. A route without a pattern takes every request, or those of which "404" or "405" is the
     * answer. Input of a guarded one that is refused goes through PHP, too.
     *
     * @return array{routes: list<array{string, string, string, string, callable, list<Argument>, ?\Closure, array{class-string, string}|null, string, bool, string}>, errors: \Closure}
     */
    public static function compile(mixed $value, string $script, bool $dev): array
    {
        if ($value instanceof App) {
            return (new self($value, $dev))->application();
        }
        if (is_int($value) || $value === null || !(is_callable($value) || (is_object($value) && Bridge::isHandler($value)))) {
            throw new BootError("$script must return a Surus\\App, a closure that takes a request, or a PSR-15 handler; it returned "
                . ($value === 1 ? 'nothing: is there a "return $app;" at its end?' : get_debug_type($value)));
        }
        $boot = new self(new App(), $dev);
        $route = $boot->single('*', $value, "$script:1");

        return ['routes' => [$boot->row($route, [], '')], 'errors' => $boot->errors->answer(...)];
    }

    private readonly Container $container;
    private readonly Planner $planner;
    private readonly Pipeline $pipeline;
    private readonly Errors $errors;

    /** @var list<callable|object|string> */
    private readonly array $middleware;

    /** @var array<int|class-string, callable> */
    private readonly array $errorHandlers;

    private readonly mixed $fallback;

    private function __construct(private readonly App $app, private readonly bool $dev)
    {
        [$this->container, $this->middleware, $this->fallback, $this->errorHandlers] = $app->parts();
        $this->planner = new Planner($this->container);
        $log = $this->container->isDeclared(LoggerInterface::class) ? $this->container->get(LoggerInterface::class) : null;
        $this->checkErrorHandlers();
        $this->errors = new Errors($this->errorHandlers, $dev, $log);
        $this->pipeline = new Pipeline($this->container, $this->errors);
    }

    /** @return array{routes: list<array{string, string, string, string, callable, list<Argument>, ?\Closure, array{class-string, string}|null, string, bool, string}>, errors: \Closure} */
    private function application(): array
    {
        $this->container->check();
        $this->listen();
        if ($this->dev) {
            $this->errors->suggest(new NearestRoutes($this->app));
        }
        $rows = [];
        $preflights = new Preflights($this->pipeline);
        foreach ($this->app->declared() as $route) {
            $rows[] = $this->row($route, $route->middleware, (string) $route->pattern);
            $preflights->note($route, [...$this->middleware, ...$route->middleware]);
        }
        foreach ($preflights->routes() as $route) {
            $rows[] = $this->row($route, [], (string) $route->pattern, false);
        }
        // Names are checked at boot, not when the first path is made.
        $this->container->get(\Surus\Routing\Urls::class);
        // Middleware of the application stands around every answer.
        $seen = $this->middleware !== [];
        if ($this->fallback !== null) {
            $rows[] = $this->row($this->single('404', $this->fallback, ''), [], '');
        } elseif ($seen || $this->dev || $this->errors->has(404)) {
            $rows[] = $this->row($this->single('404', static fn (Request $request): never => throw new NoRoute(404), ''), [], '');
        }
        if ($seen || $this->errors->has(405)) {
            $rows[] = $this->row($this->single('405', static fn (Request $request): never => throw new HttpException(405), ''), [], '');
        }

        return ['routes' => $rows, 'errors' => $this->errors->answer(...)];
    }

    /** They are called as (Throwable, Request). */
    private function checkErrorHandlers(): void
    {
        foreach ($this->errorHandlers as $what => $handler) {
            $function = new \ReflectionFunction(\Closure::fromCallable($handler));
            $type = ($function->getParameters()[0] ?? null)?->getType();
            $plain = $type instanceof \ReflectionNamedType && $type->isBuiltin() && !in_array($type->getName(), ['mixed', 'object'], true);
            if ($plain || $function->getNumberOfRequiredParameters() > 2) {
                throw new BootError(Origin::of($function) . ": the handler for errors \"$what\" takes the exception and the request, nothing else");
            }
        }
    }

    private function listen(): void
    {
        $listeners = new Listeners($this->container);
        $any = false;
        foreach ($this->app->listeners() as [$event, $listener, $priority, $origin]) {
            $any = true;
            if ($this->container->isDeclared(EventDispatcherInterface::class)) {
                throw new BootError("$origin: on() is for Surus' own dispatcher of events, but another one is declared");
            }
            try {
                $listeners->on($event, $listener, $priority);
            } catch (BootError $error) {
                throw new BootError("$origin: {$error->getMessage()}");
            }
        }
        if ($any && $this->container->isDeclared(ListenerProviderInterface::class)) {
            $listeners->add($this->container->get(ListenerProviderInterface::class));
        }
        if ($any) {
            $this->container->set(Listeners::class, $listeners);
            $this->container->set(Dispatcher::class, new Dispatcher($listeners));
        }
    }

    private function single(string $methods, mixed $handler, string $origin): Declared
    {
        return new Declared([$methods], new Pattern(''), $handler, '', '', [], [], $origin);
    }

    /**
     * @param list<callable|object|string> $inner middleware of groups and the route
     *
     * @return array{string, string, string, string, callable, list<Argument>, ?\Closure, array{class-string, string}|null, string, bool, string}
     */
    private function row(Declared $route, array $inner, string $pattern, bool $piped = true): array
    {
        $plan = $this->planner->plan($route);
        $handler = "The handler for \"{$route->label()}\" (" . Origin::name($route->handler) . ')';
        $pipeline = $piped ? $this->pipeline->make([...$this->middleware, ...$inner], $route->origin, $handler) : null;

        return [
            implode(',', $route->methods),
            $pattern === '' ? '' : (string) $plan->pattern,
            $route->host,
            implode("\n", $route->headers),
            $plan->handler,
            $plan->arguments,
            $pipeline,
            $plan->target,
            $route->about($this->middleware),
            $pipeline !== null || $this->errors->hasInput(),
            $route->origin,
        ];
    }
}
