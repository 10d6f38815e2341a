<?php

declare(strict_types=1);

namespace Surus\Runtime;

use Illuminate\Contracts\Http\Kernel;
use Illuminate\Foundation\Application;
use Illuminate\Foundation\Bootstrap\RegisterProviders;
use Illuminate\Foundation\Bootstrap\SetRequestForConsole;
use Illuminate\Http\Request;
use Surus\Cache\LaravelProvider;

/**
 * Boots a Laravel application once and serves requests with it, one at a time, each in a copy of the application: what
 * public/index.php does for one request, and what Laravel Octane does between two.
 *
 * @internal
 */
final class LaravelRunner
{
    /** Made once for all requests, as by Octane, if the application has them. */
    private const WARM = [
        'auth', 'cache', 'cache.store', 'config', 'cookie', 'db', 'db.factory', 'encrypter', 'files', 'hash', 'log', 'router', 'routes',
        'session', 'translator', 'url', 'view',
    ];

    private readonly LaravelSandbox $sandbox;

    private function __construct(private readonly Application $app)
    {
        $this->boot();
        $this->sandbox = new LaravelSandbox($app);
    }

    /**
     * Serves the application of a front controller, until no more requests come.
     *
     * @param string $script the path of its public/index.php, which is not run itself
     *
     * @throws \LogicException if bootstrap/app.php does not return an application
     */
    public static function serve(string $script): void
    {
        $folder = dirname($script, 2);
        defined('LARAVEL_START') || define('LARAVEL_START', microtime(true));
        require_once "$folder/vendor/autoload.php";
        $app = require "$folder/bootstrap/app.php";
        if (!$app instanceof Application) {
            throw new \LogicException("$folder/bootstrap/app.php does not return an Illuminate\\Foundation\\Application");
        }
        (new self($app))->run();
    }

    private function boot(): void
    {
        // Providers may make services that need a request.
        $this->app->beforeBootstrapping(RegisterProviders::class, static function (Application $app): void {
            (new SetRequestForConsole())->bootstrap($app);
        });
        $this->app->register(LaravelProvider::class);
        $this->app->make(Kernel::class)->bootstrap();
        $this->app->loadDeferredProviders();
        foreach (self::WARM as $service) {
            if ($this->app->bound($service)) {
                $this->app->make($service);
            }
        }
    }

    private function run(): void
    {
        $variables = new BootVariables();
        $maintenance = $this->app->storagePath() . '/framework/maintenance.php';
        $handler = function () use ($variables, $maintenance): void {
            $variables->restore();
            if (is_file($maintenance)) {
                (static fn () => require $maintenance)();
            }
            $this->answer();
        };
        while (\Surus\handle_request($handler)) {
            // Also after `exit`, which runs no `finally`. What it throws ends this isolate, and another one boots.
            $this->sandbox->end();
        }
    }

    private function answer(): void
    {
        $request = Request::capture();
        $app = $this->sandbox->begin($request);
        if (method_exists($app, 'handleRequest')) {
            // Laravel 11 and later.
            $app->handleRequest($request);

            return;
        }
        $kernel = $app->make(Kernel::class);
        $response = $kernel->handle($request);
        // Also ends the exchange with the client: the work that follows is after the response.
        $response->send();
        $kernel->terminate($request, $response);
    }
}
