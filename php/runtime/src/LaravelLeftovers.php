<?php

declare(strict_types=1);

namespace Surus\Runtime;

use Illuminate\Foundation\Application;
use Illuminate\Support\Str;

/**
 * What requests leave in services of a Laravel application that outlive them.
 *
 * @internal
 */
final class LaravelLeftovers
{
    public static function clear(Application $app): void
    {
        self::ofDatabases($app);
        self::ofLogs($app);
        self::ofLocale($app);
        self::ofViews($app);
        if ($app->make('config')->get('cache.stores.array') !== null && $app->resolved('cache')) {
            $app->make('cache')->store('array')->flush();
        }
        if (method_exists(Str::class, 'flushCache')) {
            Str::flushCache();
        }
    }

    /** Connections stay; a transaction that is open is rolled back. */
    private static function ofDatabases(Application $app): void
    {
        if (!$app->resolved('db')) {
            return;
        }
        $databases = $app->make('db');
        foreach ($databases->getConnections() as $name => $connection) {
            try {
                $connection->transactionLevel() > 0 && $connection->rollBack(0);
            } catch (\Throwable) {
                $databases->purge($name);
                continue;
            }
            $connection->flushQueryLog();
            $connection->forgetRecordModificationState();
        }
    }

    private static function ofLogs(Application $app): void
    {
        $log = $app->resolved('log') ? $app->make('log') : null;
        foreach ($log !== null && method_exists($log, 'getChannels') ? $log->getChannels() : [] as $channel) {
            if (method_exists($channel, 'withoutContext')) {
                $channel->withoutContext();
            }
            $logger = method_exists($channel, 'getLogger') ? $channel->getLogger() : null;
            if ($logger !== null && method_exists($logger, 'reset')) {
                $logger->reset();
            }
        }
    }

    /** Also the locale of dates follows that of the application. */
    private static function ofLocale(Application $app): void
    {
        if (!$app->resolved('translator')) {
            return;
        }
        $config = $app->make('config');
        $translator = $app->make('translator');
        if ($translator->getLocale() !== $config->get('app.locale')) {
            $app->setLocale($config->get('app.locale'));
        }
        $translator->setFallback($config->get('app.fallback_locale'));
    }

    private static function ofViews(Application $app): void
    {
        if (!$app->resolved('view.engine.resolver')) {
            return;
        }
        $engines = $app->make('view.engine.resolver');
        if (method_exists($engines, 'forget')) {
            $engines->forget('blade');
            $engines->forget('php');
        }
    }
}
