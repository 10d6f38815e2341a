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
 * Compiles what a script has returned into what the server calls. Everything that needs reflection happens here.
 *
 * @internal csrc/app/application.c calls it once per boot
 */
final class Boot
{
    /** @throws BootError if it is not an application, or an invalid one */
    public static function compile(mixed $value, string $script, bool $dev): Compiled
    {
        if ($value instanceof App) {
            return (new self($value, $dev))->application();
        }
        if (is_int($value) || $value === null || !(is_callable($value) || (is_object($value) && Bridge::isHandler($value)))) {
            throw new BootError("$script must return a Surus\\App, a closure that takes a request, or a PSR-15 handler; it returned "
                . ($value === 1 ? 'nothing: ' . self::missing($script) : get_debug_type($value)));
        }
        $boot = new self(new App(), $dev);
        $route = $boot->single('*', $value, "$script:1");

        return new Compiled([$boot->compiled($route, [], '')], $boot->errors->answer(...));
    }

    /** The probable reason why a script returns nothing. */
    private static function missing(string $script): string
    {
        $text = @file_get_contents($script);

        return is_string($text) && !str_contains($text, '<?')
            ? 'there is no "<?php" at its beginning, so it is text'
            : 'is there a "return $app;" at its end?';
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

    private function application(): Compiled
    {
        $this->container->check();
        $this->listen();
        Queues::serve($this->app->queues(), $this->container);
        if ($this->dev) {
            $this->errors->suggest(new NearestRoutes($this->app));
        }
        $routes = [];
        $preflights = new Preflights($this->pipeline);
        foreach ($this->app->declared() as $route) {
            $routes[] = $this->compiled($route, $route->middleware, (string) $route->pattern);
            $preflights->note($route, [...$this->middleware, ...$route->middleware]);
        }
        foreach ($preflights->routes() as $route) {
            $routes[] = $this->compiled($route, [], (string) $route->pattern, false);
        }
        // Check names of routes at boot, not when the first path is made.
        $this->container->get(\Surus\Routing\Urls::class);
        // Middleware of the application wraps every response.
        $seen = $this->middleware !== [];
        if ($this->fallback !== null) {
            $routes[] = $this->compiled($this->single('404', $this->fallback, ''), [], '');
        } elseif ($seen || $this->dev || $this->errors->has(404)) {
            $routes[] = $this->compiled($this->single('404', static fn (Request $request): never => throw new NoRoute(404), ''), [], '');
        }
        if ($seen || $this->errors->has(405)) {
            $routes[] = $this->compiled($this->single('405', static fn (Request $request): never => throw new HttpException(405), ''), [], '');
        }

        return new Compiled($routes, $this->errors->answer(...));
    }

    /** Checks that error handlers can be called with (Throwable, Request). */
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
        return new Declared([$methods], new Pattern(''), $handler, '', '', [], [], null, $origin);
    }

    /** @param list<callable|object|string> $inner middleware of groups and the route */
    private function compiled(Declared $route, array $inner, string $pattern, bool $piped = true): CompiledRoute
    {
        $plan = $this->planner->plan($route);
        $handler = "The handler for \"{$route->label()}\" (" . Origin::name($route->handler) . ')';
        $pipeline = $piped ? $this->pipeline->make([...$this->middleware, ...$inner], $route->origin, $handler) : null;

        return new CompiledRoute(
            methods: implode(',', $route->methods),
            pattern: $pattern === '' ? '' : (string) $plan->pattern,
            host: $route->host,
            headers: implode("\n", $route->headers),
            handler: $plan->handler,
            arguments: $plan->arguments,
            pipeline: $pipeline,
            target: $plan->target,
            about: $route->about($this->middleware),
            timeout: $route->timeout ?? -1.0,
            isGuarded: $pipeline !== null || $this->errors->hasInput(),
            origin: $route->origin,
        );
    }
}
