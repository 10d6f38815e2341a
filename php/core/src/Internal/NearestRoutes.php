<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\App;
use Surus\Http\Request;

/**
 * Routes that are similar to the path of a request that matches none, for developers.
 *
 * @internal
 */
final class NearestRoutes
{
    private const MOST = 5;

    public function __construct(private readonly App $app)
    {
    }

    /** @return list<string> "GET /users/{id:int}", the nearest first */
    public function of(Request $request): array
    {
        $asked = $request->path();
        $distances = [];
        foreach ($this->app->declared() as $route) {
            $distances[$route->label()] = self::distance($asked, $route->pattern->template());
        }
        asort($distances);

        return array_slice(array_keys($distances), 0, self::MOST);
    }

    /** The distance of two paths, part by part: a parameter is near to everything. */
    private static function distance(string $asked, string $template): int
    {
        $parts = explode('/', trim($asked, '/'));
        $others = explode('/', trim($template, '/'));
        $distance = 0;
        foreach (array_pad($parts, count($others), '') as $i => $part) {
            $other = $others[$i] ?? '';
            $distance += str_starts_with($other, '{') ? 1 : min(levenshtein(substr($part, 0, 100), substr($other, 0, 100)), 20) * 2;
        }

        return $distance;
    }
}
