<?php

declare(strict_types=1);

namespace Surus;

use function Surus\Internal\task_context;

/**
 * Values that the code of one request finds wherever it is, without handing them on: the id of the request, its user, its
 * locale. A task has those that the code had which has started it; what either sets later is its own. Requests share none,
 * whatever else they share, and the values end with the request.
 */
final class Context
{
    /** @param array<string, mixed> $values */
    private function __construct(private readonly array $values)
    {
    }

    /** The value that was set last by this name, else the default. */
    public static function get(string $name, mixed $default = null): mixed
    {
        $values = self::all();

        return \array_key_exists($name, $values) ? $values[$name] : $default;
    }

    /** @return array<string, mixed> */
    public static function all(): array
    {
        $context = task_context();

        return $context instanceof self ? $context->values : [];
    }

    /** For the code that runs, and tasks that it starts from now on. */
    public static function set(string $name, mixed $value): void
    {
        task_context(new self([$name => $value] + self::all()));
    }

    /**
     * Calls the callable with these values besides, and has those of before again when it has returned.
     *
     * @template T
     * @param array<string, mixed> $values
     * @param callable(): T $job
     * @return T
     */
    public static function with(array $values, callable $job): mixed
    {
        $before = self::all();
        task_context(new self($values + $before));
        try {
            return $job();
        } finally {
            task_context(new self($before));
        }
    }
}
