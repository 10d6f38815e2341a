<?php

declare(strict_types=1);

namespace Surus\Cache;

use Illuminate\Cache\CacheManager;
use Illuminate\Support\ServiceProvider;

/** The driver `surus` of Laravel's cache: `'stores' => ['surus' => ['driver' => 'surus']]` in config/cache.php. */
final class LaravelProvider extends ServiceProvider
{
    public function register(): void
    {
        $extend = static function (CacheManager $manager): void {
            // The manager binds it to itself: not static.
            $manager->extend('surus', function ($app, array $config): mixed {
                $prefix = $config['prefix'] ?? $app['config']->get('cache.prefix', '');

                return $app['cache']->repository(new LaravelStore(is_string($prefix) ? $prefix : ''));
            });
        };
        $this->app->afterResolving('cache', $extend);
        if ($this->app->resolved('cache')) {
            $extend($this->app->make('cache'));
        }
    }
}
