<?php

declare(strict_types=1);

namespace Surus\Session;

/** What is remembered of a visitor between requests. Values are what JSON can hold. */
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
     * @param array<string, mixed> $flash of the request before
     */
    public function __construct(private array $values, private array $flash, private readonly int $begun)
    {
    }

    /** @param mixed $default what a name that is not there gives */
    public function get(string $name, mixed $default = null): mixed
    {
        return $this->values[$name] ?? $this->flash[$name] ?? $default;
    }

    /** Whether there is a value, other than null. */
    public function has(string $name): bool
    {
        return isset($this->values[$name]) || isset($this->flash[$name]);
    }

    /** @param mixed $value what JSON can hold */
    public function set(string $name, mixed $value): void
    {
        $this->values[$name] = $value;
        $this->changed = true;
    }

    /** A name that is not there is no error. */
    public function remove(string $name): void
    {
        unset($this->values[$name], $this->flash[$name]);
        $this->changed = true;
    }

    /** For the next request only. */
    public function flash(string $name, mixed $value): void
    {
        $next = $this->values['_flash'] ?? [];
        $next[$name] = $value;
        $this->set('_flash', $next);
    }

    /**
     * Another id with the same values: whenever somebody logs in or gets more rights.
     *
     * @param bool $anew also if another request has ended the session meanwhile: somebody logs in
     */
    public function regenerate(bool $anew = false): void
    {
        $this->anew = $this->anew || $anew;
        $this->regenerated = $this->changed = true;
    }

    /** Forgets everything, here and in the browser. */
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
