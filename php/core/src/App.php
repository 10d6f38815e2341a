<?php

declare(strict_types=1);

namespace Surus;

use Psr\Container\ContainerInterface;
use Surus\Http\Middleware;
use Surus\Internal\DeclaresDatabases;
use Surus\Internal\DeclaresQueues;
use Surus\Internal\Discovery;
use Surus\Internal\Origin;
use Surus\Routing\Conditions;
use Surus\Routing\Route;
use Surus\Routing\Urls;

/**
 * An application: routes and their handlers.
 *
 * Return it from the script that `surus serve` runs. Routes are matched before PHP is entered; a handler gets its
 * arguments by name and type, and what it returns becomes the response. A group is an application within another one.
 *
 * A handler is a closure or another callable, `[Controller::class, 'method']`, an invokable class or a PSR-15 handler.
 * A middleware is a {@see Middleware}, a PSR-15 middleware, a closure (Request, Closure $next): mixed, or the name of
 * a class of one of these.
 *
 * @phpstan-type Handler callable|object|string|array{class-string|object, string}
 */
final class App
{
    use Conditions;
    use DeclaresDatabases;
    use DeclaresQueues;

    /** @var list<Route|App> */
    private array $items = [];

    /** @var array<int|class-string, callable> */
    private array $errorHandlers = [];

    /** @var list<array{class-string, mixed, int, string}> */
    private array $listeners = [];

    private mixed $fallback = null;
    private string $prefix = '';
    private string $namePrefix = '';
    private ?App $parent = null;
    private ?Urls $urls = null;
    private readonly Container $container;

    public function __construct()
    {
        $this->container = new Container();
        $this->container->set(self::class, $this);
        $this->container->singleton(Urls::class, fn (): Urls => $this->urls());
    }

    /** A route for GET (and HEAD) requests. */
    public function get(string $pattern, mixed $handler): Route
    {
        return $this->map('GET', $pattern, $handler);
    }

    /** A route for POST requests. */
    public function post(string $pattern, mixed $handler): Route
    {
        return $this->map('POST', $pattern, $handler);
    }

    /** A route for PUT requests. */
    public function put(string $pattern, mixed $handler): Route
    {
        return $this->map('PUT', $pattern, $handler);
    }

    /** A route for PATCH requests. */
    public function patch(string $pattern, mixed $handler): Route
    {
        return $this->map('PATCH', $pattern, $handler);
    }

    /** A route for DELETE requests. */
    public function delete(string $pattern, mixed $handler): Route
    {
        return $this->map('DELETE', $pattern, $handler);
    }

    /** A route for OPTIONS requests; without one the server answers them with `Allow`. */
    public function options(string $pattern, mixed $handler): Route
    {
        return $this->map('OPTIONS', $pattern, $handler);
    }

    /** A route for every method that has no other route with this pattern. */
    public function any(string $pattern, mixed $handler): Route
    {
        return $this->map('*', $pattern, $handler);
    }

    /**
     * A WebSocket: a route like those for GET, whose handler talks with the client. It has the same middleware, arguments and
     * answers, 101 in place of 200; what middleware answers in place of the handler is sent as it is.
     *
     * The handler is called when 101 is sent: with a {@see WebSocket} where it asks for one. A class with `onMessage(WebSocket
     * $socket, string $message)` may also have `onOpen()`, which has the arguments of a handler, and `onClose(WebSocket
     * $socket)`; each WebSocket has an object of its own. `request_timeout` bounds the handler until it is called, and after
     * its client has gone.
     *
     * @param list<string> $origins other sites whose pages may connect: `https://www.example.com`, or `*` for all of them; pages
     *     of this site and clients that are no browser always may
     * @param list<string> $protocols what the client may ask for, the preferred one first
     * @param int $maxMessage bytes of a message of the client; a larger one closes the WebSocket with 1009
     */
    public function websocket(
        string $pattern,
        mixed $handler,
        array $origins = [],
        array $protocols = [],
        int $maxMessage = 1_048_576,
    ): Route {
        return $this->map('GET', $pattern, new Internal\SocketRoute($handler, $origins, $protocols, $maxMessage));
    }

    /**
     * A route for one method or several.
     *
     * @param string|list<string> $methods
     * @param string $pattern `/users/{id:int}`; constraints are int, slug, uuid or a regular expression, `{page?}` is
     *     optional, `{rest*}` is the rest of the path
     */
    public function map(string|array $methods, string $pattern, mixed $handler): Route
    {
        return $this->mapAt(Origin::caller(), $methods, $pattern, $handler);
    }

    /**
     * @internal for routes whose declaration is at another place than this call
     *
     * @param string $origin file and line
     * @param string|list<string> $methods
     */
    public function mapAt(string $origin, string|array $methods, string $pattern, mixed $handler): Route
    {
        $methods = (array) $methods;
        foreach ($methods ?: [''] as $method) {
            if ($method !== '*' && preg_match('/^[A-Za-z][A-Za-z0-9!#$%&\'*+.^_`|~-]*$/D', $method) !== 1) {
                throw new BootError("$origin: \"$method\" is no method of a request (\"*\" is all of them)");
            }
        }

        return $this->items[] = new Route($methods, $pattern, $handler, $origin);
    }

    /**
     * Routes with a common prefix.
     *
     * @param callable(App): mixed $routes
     *
     * @return App the group, to which middleware, a host and so on can be added
     */
    public function group(string $prefix, callable $routes): App
    {
        $group = new self();
        $this->mount($prefix, $group);
        $routes($group);

        return $group;
    }

    /** Mounts another application, with its routes and middleware, below a path. It uses the services of this one. */
    public function mount(string $prefix, App $app): App
    {
        if ($app->parent !== null) {
            throw new BootError(Origin::caller() . ': this application is mounted already');
        }
        if ($app->fallback !== null || $app->errorHandlers !== [] || $app->container->hasDelegate()) {
            throw new BootError(Origin::caller() . ': a fallback, error handlers and a container belong to the outermost application');
        }
        $app->parent = $this;
        $this->outermost()->container->absorb($app->container);
        $this->outermost()->queues += $app->queues;
        $app->prefix = $prefix === '/' ? '' : $prefix;
        $this->items[] = $app;

        return $app;
    }

    /**
     * The routes of a REST resource: index, create, store, show, edit, update, destroy, as far as the class has them.
     *
     * @param class-string $controller
     * @param string $parameter may have a constraint: "id:int"
     *
     * @return App the group of these routes, named after the path: "photos.show"
     */
    public function resource(string $path, string $controller, string $parameter = 'id'): App
    {
        $one = '/{' . $parameter . '}';
        $routes = [
            'index' => ['GET', ''], 'create' => ['GET', '/create'], 'store' => ['POST', ''], 'show' => ['GET', $one],
            'edit' => ['GET', "$one/edit"], 'update' => [['PUT', 'PATCH'], $one], 'destroy' => ['DELETE', $one],
        ];
        if (array_filter(array_keys($routes), static fn (string $method): bool => method_exists($controller, $method)) === []) {
            throw new BootError(Origin::caller() . ": $controller " . (class_exists($controller)
                ? 'has none of the methods of a resource: ' . implode(', ', array_keys($routes)) : 'is no class'));
        }
        $group = $this->mount($path, new self())->name(str_replace('/', '.', trim($path, '/')) . '.');
        foreach ($routes as $method => [$verb, $pattern]) {
            if (method_exists($controller, $method)) {
                $group->map($verb, $pattern, [$controller, $method])->name($method);
            }
        }

        return $group;
    }

    /**
     * Adds the routes that methods of these classes declare with attributes.
     *
     * @param string ...$sources classes, or folders whose PHP files are loaded to find their classes
     */
    public function controllers(string ...$sources): static
    {
        foreach ($sources as $source) {
            foreach (is_dir($source) ? Discovery::classes($source) : [$source] as $class) {
                Discovery::routes($this, $class);
            }
        }

        return $this;
    }

    /** Adds routes from a file that returns a function (App): mixed. */
    public function load(string $file): static
    {
        if (!is_file($file)) {
            throw new BootError(Origin::caller() . ": there is no file \"$file\"");
        }
        $routes = (static fn (): mixed => require $file)();
        if (!is_callable($routes)) {
            throw new BootError("$file:1: a file of routes returns a function that takes the application");
        }
        $routes($this);

        return $this;
    }

    /**
     * Adds a route for each file of a folder: `users/[id].php` is `/users/{id}`, `index.php` the folder itself. A file
     * returns a handler for all methods, or an array of handlers by method.
     */
    public function folder(string $prefix, string $folder): App
    {
        return $this->group($prefix, static fn (App $group) => Discovery::files($group, $folder));
    }

    /**
     * Adds a page for each script of a folder, named as in folder(). A script runs for each request to it, with
     * `$request` and the parameters of its path as variables: its output is the page, or its return value is the
     * result.
     */
    public function pages(string $prefix, string $folder): App
    {
        return $this->group($prefix, static fn (App $group) => Discovery::pages($group, $folder));
    }

    /** The prefix of the names of these routes. */
    public function name(string $prefix): static
    {
        $this->namePrefix = $prefix;

        return $this;
    }

    /** Answers every request that matches no route, instead of the server's 404. */
    public function fallback(mixed $handler): static
    {
        $this->root(__FUNCTION__)->fallback = $handler;

        return $this;
    }

    /**
     * Makes the response to an exception of this class, or to one with this status. 404 and 405 include requests that
     * match no route; 422 includes refused input ({@see Schema\InvalidInput}).
     *
     * @param int|class-string<\Throwable> $what
     * @param callable(\Throwable, Http\Request): mixed $handler if it returns null, the next one is called
     */
    public function error(int|string $what, callable $handler): static
    {
        if (is_int($what) ? $what < 400 || $what > 599 : !is_a($what, \Throwable::class, true) && !interface_exists($what)) {
            throw new BootError(Origin::caller() . ": \"$what\" is neither a status from 400 to 599 nor a class of exceptions");
        }
        $this->root(__FUNCTION__)->errorHandlers[$what] = $handler;

        return $this;
    }

    /** The container for services that are not declared here. */
    public function container(ContainerInterface $container): static
    {
        $this->root(__FUNCTION__)->container->delegate($container);

        return $this;
    }

    /** Declares a service that all requests share; made when it is first needed. */
    public function singleton(string $id, ?\Closure $factory = null): static
    {
        $this->root(__FUNCTION__)->container->singleton($id, $factory);

        return $this;
    }

    /** Declares a service of which each request has its own object: required for services that hold a connection. */
    public function scoped(string $id, ?\Closure $factory = null): static
    {
        $this->root(__FUNCTION__)->container->scoped($id, $factory);

        return $this;
    }

    /**
     * Calls the listener with each event that is an instance of this class or interface. Events are dispatched with the
     * `Psr\EventDispatcher\EventDispatcherInterface` that handlers and services get.
     *
     * @param class-string $event
     * @param callable|class-string|array{class-string|object, string} $listener a class is made when it is first needed
     * @param int $priority the highest is first
     */
    public function on(string $event, mixed $listener, int $priority = 0): static
    {
        $this->listeners[] = [$event, $listener, $priority, Origin::caller()];

        return $this;
    }

    /**
     * The path of a named route.
     *
     * @param array<string, string|int|float|\BackedEnum|\Stringable> $parameters those not in the path go to the query
     */
    public function url(string $name, array $parameters = []): string
    {
        return $this->urls()->to($name, $parameters);
    }

    /**
     * @internal for the server, once at boot
     *
     * @return \Generator<int, Internal\Declared>
     */
    public function declared(?Internal\Inherited $from = null): \Generator
    {
        $inherited = $from === null
            ? new Internal\Inherited('', '', $this->host, [], $this->timeout)
            : $from->below($this->prefix, $this->namePrefix, $this->host, $this->middleware, $this->timeout);
        foreach ($this->items as $item) {
            if ($item instanceof self) {
                yield from $item->declared($inherited);
            } else {
                yield $item->declared($inherited);
            }
        }
    }

    /**
     * @internal for the server, once at boot
     *
     * @return \Generator<int, array{class-string, mixed, int, string}> event, listener, priority, place
     */
    public function listeners(): \Generator
    {
        yield from $this->listeners;
        foreach ($this->items as $item) {
            if ($item instanceof self) {
                yield from $item->listeners();
            }
        }
    }

    /**
     * All routes, including those of groups.
     *
     * @return list<array{string, string, mixed}> methods separated by commas ("*": all), pattern, handler
     */
    public function routes(): array
    {
        $rows = [];
        foreach ($this->declared() as $route) {
            $rows[] = [implode(',', $route->methods), (string) $route->pattern, $route->handler, [...$this->middleware, ...$route->middleware]];
        }

        return $rows;
    }

    /**
     * @internal for the server, once at boot
     *
     * @return array{Container, list<callable|object|string>, mixed, array<int|class-string, callable>}
     */
    public function parts(): array
    {
        return [$this->container, $this->middleware, $this->fallback, $this->errorHandlers];
    }

    private function urls(): Urls
    {
        if ($this->parent !== null) {
            return $this->parent->urls();
        }

        return $this->urls ??= new Urls($this->declared());
    }

    private function outermost(): App
    {
        return $this->parent?->outermost() ?? $this;
    }

    private function root(string $what): App
    {
        if ($this->parent !== null) {
            throw new BootError(Origin::caller() . ": $what() belongs to the outermost application");
        }

        return $this;
    }
}
