<?php

declare(strict_types=1);

namespace Surus;

/**
 * An application: routes and their handlers.
 *
 * Return it from the script that `surus serve` runs. Routes are matched before PHP is entered; a handler gets its
 * arguments by name and type, and what it returns becomes the response.
 */
final class App
{
    /** @var list<array{string, string, callable}> */
    private array $routes = [];

    /** A route for GET (and HEAD) requests. */
    public function get(string $pattern, callable $handler): static
    {
        return $this->map('GET', $pattern, $handler);
    }

    /** A route for POST requests. */
    public function post(string $pattern, callable $handler): static
    {
        return $this->map('POST', $pattern, $handler);
    }

    /** A route for every method that has no route of its own there. */
    public function any(string $pattern, callable $handler): static
    {
        return $this->map('*', $pattern, $handler);
    }

    /** A route for one method. */
    public function map(string $method, string $pattern, callable $handler): static
    {
        $this->routes[] = [$method, $pattern, $handler];

        return $this;
    }

    /**
     * @internal for the server, once at boot
     *
     * @return list<array{string, string, callable}>
     */
    public function routes(): array
    {
        return $this->routes;
    }
}
