<?php

declare(strict_types=1);

namespace Surus\Runtime;

use Illuminate\Container\Container;
use Illuminate\Foundation\Application;
use Illuminate\Http\Request;
use Illuminate\Pagination\PaginationState;
use Illuminate\Support\Facades\Facade;

/**
 * A copy of a booted application for each request: what a request binds, makes and configures ends with it.
 *
 * Services that the boot has made are the same objects in all copies: they are told which copy is the current one, and
 * what they keep of a request is forgotten. The list is Octane's.
 *
 * @internal
 */
final class LaravelSandbox
{
    /** Services that hold the application, by the property that does. */
    private const HOLDERS = [
        'auth' => 'app',
        'cache' => 'app',
        'db' => 'app',
        'events' => 'container',
        'filesystem' => 'app',
        'hash' => 'container',
        'log' => 'app',
        'mail.manager' => 'app',
        'queue' => 'app',
        'router' => 'container',
        'session' => 'container',
        'validator' => 'container',
        'view' => 'container',
        \Illuminate\Broadcasting\BroadcastManager::class => 'app',
        \Illuminate\Bus\Dispatcher::class => 'container',
        \Illuminate\Contracts\Auth\Access\Gate::class => 'container',
        \Illuminate\Contracts\Debug\ExceptionHandler::class => 'container',
        \Illuminate\Contracts\Http\Kernel::class => 'app',
        \Illuminate\Contracts\Pipeline\Hub::class => 'container',
        \Illuminate\Notifications\ChannelManager::class => 'container',
        \Illuminate\Routing\Contracts\ControllerDispatcher::class => 'container',
    ];

    /**
     * What services are asked to forget, by the names of their methods. Not the drivers of broadcasting: they have the channels that
     * the boot has declared.
     */
    private const FORGET = [
        'auth' => ['forgetGuards'],
        'cookie' => ['flushQueuedCookies'],
        'log' => ['flushSharedContext'],
        'mail.manager' => ['forgetMailers'],
        'session' => ['forgetDrivers'],
        \Illuminate\Foundation\Vite::class => ['flush'],
        \Illuminate\Notifications\ChannelManager::class => ['forgetDrivers'],
    ];

    /** The copy of the current request. */
    private ?Application $copy = null;

    /** The request that the boot was given. */
    private readonly object $bootRequest;

    public function __construct(private readonly Application $app)
    {
        $this->bootRequest = $app->make('request');
    }

    /** @return Application the copy for this request */
    public function begin(Request $request): Application
    {
        $copy = $this->copy = clone $this->app;
        self::makeCurrent($copy);
        foreach (['config', 'url', 'view'] as $service) {
            if ($this->app->bound($service)) {
                $copy->instance($service, clone $this->app->make($service));
            }
        }
        $this->tell($copy);
        // The boot's application has it too: closures of providers hold that one.
        $this->app->instance('request', $request);
        $copy->instance('request', $request);

        return $copy;
    }

    /** Forgets the request that was, whether it came to its end or not. */
    public function end(): void
    {
        $copy = $this->copy;
        if ($copy === null) {
            return;
        }
        $this->copy = null;
        $this->flushController($copy);
        self::makeCurrent($this->app);
        $this->tell($this->app);
        $this->app->instance('request', $this->bootRequest);
        $this->forget();
        LaravelLeftovers::clear($this->app);
        $copy->flush();
    }

    private static function makeCurrent(Application $app): void
    {
        $app->instance('app', $app);
        $app->instance(Container::class, $app);
        Container::setInstance($app);
        Facade::clearResolvedInstances();
        Facade::setFacadeApplication($app);
    }

    /** Tells services that the boot has made which application is the current one. */
    private function tell(Application $app): void
    {
        foreach (self::HOLDERS as $name => $property) {
            if ($this->has($name)) {
                self::set($this->app->make($name), $property, $app);
            }
        }
        if ($app->bound('view')) {
            $view = $app->make('view');
            self::set($view, 'container', $app);
            $view->share('app', $app);
            $view->share('__env', $view);
        }
        if (class_exists(PaginationState::class)) {
            PaginationState::resolveUsing($app);
        }
    }

    private function forget(): void
    {
        foreach (self::FORGET as $name => $methods) {
            $service = $this->has($name) ? $this->app->make($name) : null;
            foreach ($methods as $method) {
                if ($service !== null && method_exists($service, $method)) {
                    $service->$method();
                }
            }
        }
        foreach (['auth.driver', 'session.store'] as $ofRequest) {
            $this->app->forgetInstance($ofRequest);
        }
        if (method_exists($this->app, 'forgetScopedInstances')) {
            $this->app->forgetScopedInstances();
        }
    }

    /** A route keeps its controller, which has the services of the request that it was made for. */
    private function flushController(Application $copy): void
    {
        $route = $copy->bound('router') ? $copy->make('router')->current() : null;
        if ($route !== null && method_exists($route, 'flushController')) {
            $route->flushController();
        }
    }

    /** Whether the boot has made this service. */
    private function has(string $name): bool
    {
        return $this->app->resolved($name) && $this->app->isShared($name);
    }

    private static function set(object $service, string $property, Application $app): void
    {
        if (property_exists($service, $property)) {
            (function () use ($property, $app): void {
                $this->$property = $app;
            })->bindTo($service, $service::class)();
        }
    }
}
