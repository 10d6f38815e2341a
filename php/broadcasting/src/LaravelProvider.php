<?php

declare(strict_types=1);

namespace Surus\Broadcasting;

use Illuminate\Broadcasting\BroadcastManager;
use Illuminate\Contracts\Foundation\Application;
use Illuminate\Support\ServiceProvider;

/**
 * The driver `surus` of Laravel's broadcasting: name this among the providers of config/app.php, and in config/broadcasting.php:
 *
 *     'connections' => ['surus' => [
 *         'driver' => 'surus',
 *         'key' => env('PUSHER_APP_KEY'),
 *         'secret' => env('PUSHER_APP_SECRET'),
 *         'app_id' => env('PUSHER_APP_ID'),
 *         'url' => env('PUSHER_URL', 'http://127.0.0.1:8080'),
 *     ]],
 */
final class LaravelProvider extends ServiceProvider
{
    public function register(): void
    {
        $this->callAfterResolving(BroadcastManager::class, static function (BroadcastManager $manager): void {
            $manager->extend('surus', static fn (Application $app, array $config): LaravelBroadcaster => self::broadcaster($config));
        });
    }

    /** @param array<string, mixed> $config */
    private static function broadcaster(array $config): LaravelBroadcaster
    {
        $text = static function (string $key, ?string $default = null) use ($config): string {
            $value = $config[$key] ?? $default;
            if (!is_string($value) && !is_int($value)) {
                throw new \InvalidArgumentException("config/broadcasting.php: the connection of the driver \"surus\" has no \"$key\"");
            }

            return (string) $value;
        };
        $encryption = $config['encryption_key'] ?? null;
        $key = is_string($encryption) ? base64_decode($encryption, true) : null;
        if ($key === false) {
            throw new \InvalidArgumentException('config/broadcasting.php: "encryption_key" is not base64');
        }
        $credentials = new Credentials($text('key'), $text('secret'), $key);

        return new LaravelBroadcaster($credentials, new Publisher($credentials, $text('app_id'), $text('url', 'http://127.0.0.1:8080'), $text('prefix', '')));
    }
}
