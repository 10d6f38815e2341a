<?php

declare(strict_types=1);

namespace Surus\Routing;

use Surus\BootError;
use Surus\Internal\Declared;

/** Paths of named routes. */
final class Urls
{
    /** @var array<string, Pattern> */
    private array $patterns = [];

    /**
     * @internal
     *
     * @param iterable<Declared> $routes
     */
    public function __construct(iterable $routes)
    {
        foreach ($routes as $route) {
            if ($route->name === '') {
                continue;
            }
            if (isset($this->patterns[$route->name])) {
                throw new BootError("$route->origin: there are two routes with the name \"$route->name\"");
            }
            $this->patterns[$route->name] = $route->pattern;
        }
    }

    /**
     * The path of a route.
     *
     * @param array<string, string|int|float|\BackedEnum|\Stringable> $parameters those not in the path go to the query
     *
     * @throws \InvalidArgumentException if there is no such route, or a value is missing or invalid
     */
    public function to(string $name, array $parameters = []): string
    {
        $pattern = $this->patterns[$name] ?? throw new \InvalidArgumentException("There is no route with the name \"$name\"");
        $values = array_map(
            static fn (mixed $value): string => (string) ($value instanceof \BackedEnum ? $value->value : $value),
            $parameters,
        );
        $path = $pattern->fill($values);

        return $values === [] ? $path : $path . '?' . http_build_query($values, '', '&', PHP_QUERY_RFC3986);
    }
}
