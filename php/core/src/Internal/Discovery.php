<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\App;
use Surus\Attribute;
use Surus\BootError;
use Surus\Schema\Attributes;

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
            throw new BootError(Origin::caller() . ": \"$class\" is neither a class nor a folder");
        }
        $reflection = new \ReflectionClass($class);
        Imports::checkClass($reflection);
        $common = Attributes::first($reflection, Attribute\Group::class) ?? new Attribute\Group();
        $group = null;
        foreach ($reflection->getMethods() as $method) {
            Imports::check($method);
            foreach (Attributes::all($method, Attribute\Route::class) as $route) {
                if (!$method->isPublic()) {
                    throw new BootError(Origin::of($method) . ": $class::{$method->getName()}() has a route, but is not public");
                }
                $group ??= $app->mount($common->prefix, new App())->name($common->name)->host($common->host)->timeout($common->timeout)->use(...$common->use, ...$common->middleware);
                $group->mapAt(Origin::of($method), $route->methods, $route->path, [$class, $method->getName()])
                    ->name($route->name)->host($route->host)->timeout($route->timeout)->use(...$route->use, ...$route->middleware);
            }
        }
    }

    /** Adds a route for each file of a folder. */
    public static function files(App $app, string $folder): void
    {
        foreach (self::scripts($folder) as $file) {
            $pattern = self::pattern($file, $folder);
            $handlers = (static fn (): mixed => require $file)();
            if (is_array($handlers) && !is_callable($handlers)) {
                foreach ($handlers as $method => $handler) {
                    $app->mapAt("$file:1", (string) $method, $pattern, $handler);
                }
            } elseif (is_callable($handlers)) {
                $app->mapAt("$file:1", '*', $pattern, $handlers);
            } else {
                throw new BootError("$file:1: it returns neither a handler nor handlers by method");
            }
        }
    }

    /** Adds a route for each script of a folder, which runs for each request. */
    public static function pages(App $app, string $folder): void
    {
        foreach (self::scripts($folder) as $file) {
            self::mayRunAgain($file);
            $app->mapAt("$file:1", ['GET', 'POST'], self::pattern($file, $folder), new Page($file));
        }
    }

    /** `users/[id].php` is `/users/{id}`, `index.php` the folder itself. */
    private static function pattern(string $file, string $folder): string
    {
        $path = '/' . ltrim(substr($file, strlen($folder), -strlen('.php')), '/');
        $pattern = (string) preg_replace(['~\[\.\.\.(\w+)\]~', '~\[(\w+(?::[^\]/]+)?)\]~'], ['{$1*}', '{$1}'], $path);
        $pattern = (string) preg_replace('~/index$~', '', $pattern);

        return $pattern === '' ? '/' : $pattern;
    }

    /** Refuses declarations in a page: running it a second time would be a fatal error, since they exist already. */
    private static function mayRunAgain(string $file): void
    {
        $depth = 0;
        $before = null;
        $tokens = \PhpToken::tokenize((string) file_get_contents($file));
        foreach ($tokens as $i => $token) {
            $depth += Tokens::depth($token);
            $declares = $token->is([T_CLASS, T_INTERFACE, T_TRAIT, T_ENUM]) && !$before?->is([T_NEW, T_DOUBLE_COLON]);
            if ($token->is(T_FUNCTION)) {
                $next = array_values(array_filter(array_slice($tokens, $i + 1, 4), static fn (\PhpToken $one): bool => !$one->isIgnorable() && $one->text !== '&'));
                $declares = ($next[0] ?? null)?->is(T_STRING) === true;
            }
            if ($declares && $depth === 0) {
                throw new BootError("$file:$token->line: a page runs for each request, so it cannot declare functions and classes: put them into another file");
            }
            $before = $token->isIgnorable() ? $before : $token;
        }
    }

    /** @return list<string> */
    private static function scripts(string $folder): array
    {
        if (!is_dir($folder)) {
            throw new BootError(Origin::caller() . ": there is no folder \"$folder\"");
        }
        // A new file is a new route: watch the folder.
        \Surus\watch($folder);
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
