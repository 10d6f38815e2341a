<?php

declare(strict_types=1);

namespace Surus\Schema;

use Psr\Container\ContainerInterface;
use Surus\BootError;

/**
 * The credentials that routes require, determined from their middleware.
 *
 * @internal
 */
final class Security
{
    /** @var array<string, array<string, mixed>> security schemes by name */
    private array $schemes = [];

    public function __construct(private readonly ContainerInterface $container)
    {
    }

    /**
     * @param list<callable|object|string> $middleware the outermost first
     *
     * @return array{security?: list<object>, unauthorized?: bool} OpenAPI's Security Requirement Objects, of which one is
     *     sufficient, and whether requests may be refused
     */
    public function of(array $middleware): array
    {
        $required = [];
        $optional = [];
        $refuses = false;
        $middleware = array_map($this->made(...), $middleware);
        foreach ($middleware as $one) {
            // A session alone does not mean that a user has logged in.
            if ($one instanceof SessionScheme && !self::has($middleware, UserOfSession::class)) {
                continue;
            }
            $refuses = $refuses || ($one instanceof SecurityScheme && !$one instanceof SessionScheme);
            if ($one instanceof SecurityScheme && $one->isOptional()) {
                $optional[] = [$this->name($one) => []];
            } elseif ($one instanceof SecurityScheme) {
                $required[$this->name($one)] = [];
            }
        }
        $wantsUser = self::has($middleware, RequiresUser::class);
        $security = match (true) {
            $required !== [] => [$required],
            $wantsUser || $optional === [] => $optional,
            // An empty object: no credentials are sufficient, too.
            default => [[], ...$optional],
        };

        return ($security === [] ? [] : ['security' => array_map(static fn (array $each): object => (object) $each, $security)])
            + ($refuses || $wantsUser ? ['unauthorized' => true] : []);
    }

    /** @param list<mixed> $middleware objects, or names of classes of which no object was made yet */
    private static function has(array $middleware, string $interface): bool
    {
        foreach ($middleware as $one) {
            if ((is_object($one) || is_string($one)) && is_a($one, $interface, true)) {
                return true;
            }
        }

        return false;
    }

    /** @return array<string, array<string, mixed>> by name */
    public function schemes(): array
    {
        return $this->schemes;
    }

    private function name(SecurityScheme $of): string
    {
        $scheme = $of->securityScheme();
        $name = $of->schemeName();
        for ($i = 2, $base = $name; ($this->schemes[$name] ?? $scheme) !== $scheme; $i++) {
            $name = $base . $i;
        }
        $this->schemes[$name] = $scheme;

        return $name;
    }

    private function made(mixed $middleware): mixed
    {
        if (!is_string($middleware) || !is_a($middleware, SecurityScheme::class, true)) {
            return $middleware;
        }
        try {
            return $this->container->get($middleware);
        } catch (BootError) {
            // The boot reports this error if the middleware is used.
            return $middleware;
        }
    }
}
