<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\App;
use Surus\Attribute;
use Surus\BootError;

/**
 * Routes found in classes and folders, once at boot.
 *
 * @internal
 */
final class Discovery
{
    /**
     * Classes that the PHP files of a folder declare.
     *
     * @return list<class-string>
     */
    public static function classes(string $folder): array
    {
        $files = [];
        foreach (self::scripts($folder) as $file) {
            require_once $file;
            $files[(string) realpath($file)] = true;
        }
        $classes = array_filter(
            get_declared_classes(),
            static fn (string $class): bool => isset($files[(string) (new \ReflectionClass($class))->getFileName()]),
        );

        return array_values($classes);
    }

    /** Adds the routes of a class. */
    public static function routes(App $app, string $class): void
    {
        if (!class_exists($class)) {
            throw new BootError(Origin::caller() . ": there is no class $class");
        }
        $reflection = new \ReflectionClass($class);
        $common = $reflection->getAttributes(Attribute\Group::class)[0] ?? null;
        $common = $common?->newInstance() ?? new Attribute\Group();
        $group = null;
        foreach ($reflection->getMethods(\ReflectionMethod::IS_PUBLIC) as $method) {
            foreach ($method->getAttributes(Attribute\Route::class, \ReflectionAttribute::IS_INSTANCEOF) as $attribute) {
                $group ??= $app->mount($common->prefix, new App())->name($common->name)->host($common->host)->use(...$common->use);
                $route = $attribute->newInstance();
                $group->map($route->methods, $route->path, [$class, $method->getName()])
                    ->name($route->name)->host($route->host)->use(...$route->use);
            }
        }
    }

    /** Adds a route for each file of a folder. */
    public static function files(App $app, string $folder): void
    {
        foreach (self::scripts($folder) as $file) {
            $path = substr($file, strlen($folder), -strlen('.php'));
            $pattern = (string) preg_replace(['~\[\.\.\.(\w+)\]~', '~\[(\w+(?::[^\]/]+)?)\]~'], ['{$1*}', '{$1}'], $path);
            $pattern = (string) preg_replace('~/index$~', '', $pattern);
            $handlers = (static fn (): mixed => require $file)();
            $pattern = $pattern === '' ? '/' : $pattern;
            if (is_array($handlers) && !is_callable($handlers)) {
                foreach ($handlers as $method => $handler) {
                    $app->map((string) $method, $pattern, $handler);
                }
            } elseif (is_callable($handlers)) {
                $app->any($pattern, $handlers);
            } else {
                throw new BootError("$file:1: it returns neither a handler nor handlers by method");
            }
        }
    }

    /** @return list<string> */
    private static function scripts(string $folder): array
    {
        $found = [];
        $files = new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($folder, \FilesystemIterator::SKIP_DOTS));
        foreach ($files as $file) {
            if ($file instanceof \SplFileInfo && $file->getExtension() === 'php') {
                $found[] = $file->getPathname();
            }
        }
        sort($found);

        return $found;
    }
}
