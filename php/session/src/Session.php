<?php

declare(strict_types=1);

namespace Surus\Session;

/** Values that are stored for a client between requests. They must be representable in JSON. */
final class Session
{
    private bool $changed = false;
    private bool $regenerated = false;
    private bool $destroyed = false;
    private bool $anew = false;

    /**
     * @internal {@see \Surus\Middleware\Sessions} makes it
     *
     * @param array<string, mixed> $values
     * @param array<string, mixed> $flash from the previous request
     */
    public function __construct(private array $values, private array $flash, private readonly int $begun)
    {
    }

    /** @param mixed $default the result for a missing name */
    public function get(string $name, mixed $default = null): mixed
    {
        return $this->values[$name] ?? $this->flash[$name] ?? $default;
    }

    /** Whether there is a value other than null. */
    public function has(string $name): bool
    {
        return isset($this->values[$name]) || isset($this->flash[$name]);
    }

    /** @param mixed $value must be representable in JSON */
    public function set(string $name, mixed $value): void
    {
        $this->values[$name] = $value;
        $this->changed = true;
    }

    /** A missing name is not an error. */
    public function remove(string $name): void
    {
        unset($this->values[$name], $this->flash[$name]);
        $this->changed = true;
    }

    /** Sets a value for the next request only. */
    public function flash(string $name, mixed $value): void
    {
        $next = $this->values['_flash'] ?? [];
        $next[$name] = $value;
        $this->set('_flash', $next);
    }

    /**
     * Gives the session another id with the same values: whenever a user logs in or gets more rights.
     *
     * @param bool $anew also if another request has ended the session meanwhile: for a login
     */
    public function regenerate(bool $anew = false): void
    {
        $this->anew = $this->anew || $anew;
        $this->regenerated = $this->changed = true;
    }

    /** Deletes everything, on the server and in the browser. */
    public function destroy(): void
    {
        $this->values = $this->flash = [];
        $this->destroyed = true;
    }

    /** @return array<string, mixed> */
    public function all(): array
    {
        return array_diff_key($this->values, ['_flash' => 1]) + $this->flash;
    }

    /**
     * @internal
     *
     * @return array{changed: bool, regenerated: bool, anew: bool, destroyed: bool, values: array<string, mixed>, begun: int}
     */
    public function state(): array
    {
        return [
            'changed' => $this->changed || $this->flash !== [],
            'regenerated' => $this->regenerated,
            'anew' => $this->anew,
            'destroyed' => $this->destroyed,
            'values' => $this->values,
            'begun' => $this->begun,
        ];
    }
}
