<?php

declare(strict_types=1);

namespace Surus\Doctor;

/**
 * A place in the shared state, and what is there.
 *
 * @internal
 */
final class Place
{
    /** @var list<string> */
    private array $values = [];

    private ?string $connection = null;

    public function __construct(public readonly Root $root, public readonly string $path)
    {
    }

    public function add(string $value, ?string $connection): void
    {
        $this->values[] = $value;
        $this->connection ??= $connection;
    }

    /** The class of the connection that is kept here: "a PDO". */
    public function connection(): ?string
    {
        return $this->connection;
    }

    public function name(): string
    {
        return $this->root->name . $this->path;
    }

    public function holds(string $token): bool
    {
        foreach ($this->values as $value) {
            if (str_contains($value, $token)) {
                return true;
            }
        }

        return false;
    }

    /** What tells whether it has changed. */
    public function fingerprint(): string
    {
        return hash('xxh128', implode("\0", $this->values));
    }

    public function summary(): string
    {
        return count($this->values) === 1 ? self::shortened($this->values[0]) : count($this->values) . ' values';
    }

    private static function shortened(string $value): string
    {
        return strlen($value) > 40 ? substr($value, 0, 40) . '…' : $value;
    }
}
