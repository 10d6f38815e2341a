<?php

declare(strict_types=1);

namespace Surus\Schema;

/**
 * A type of a doc comment as JSON Schema: `?int`, `A|B`, `list<T>`, `T[]`, `array<string, T>`, `array{a: T, b?: U}`.
 * An unknown type allows any value.
 *
 * @internal
 */
final class DocType
{
    private int $at = 0;

    /** @var list<string> */
    private array $tokens;

    /**
     * @param ?Scope $scope resolves names of classes
     * @param \Closure(string): array<string, mixed> $classes returns the schema of a class
     */
    public function __construct(
        string $type,
        private readonly ?Scope $scope,
        private readonly \Closure $classes,
    ) {
        preg_match_all('/[\\\\\w-]+|\[\]|"[^"]*"|\'[^\']*\'|[<>{}(),:?|&]/', $type, $found);
        $this->tokens = $found[0];
    }

    /** @return array<string, mixed> */
    public function schema(): array
    {
        $alternatives = [$this->one()];
        while ($this->take('|')) {
            $alternatives[] = $this->one();
        }
        if (\count($alternatives) === 1) {
            return $alternatives[0];
        }
        if (\in_array([], $alternatives, true)) {
            return [];
        }

        return self::any($alternatives);
    }

    /**
     * @param non-empty-list<array<string, mixed>> $alternatives
     *
     * @return array<string, mixed>
     */
    private static function any(array $alternatives): array
    {
        $types = [];
        foreach ($alternatives as $each) {
            if (array_keys($each) !== ['type']) {
                return ['anyOf' => $alternatives];
            }
            // One type, or several.
            array_push($types, ...(array) $each['type']);
        }

        return ['type' => array_values(array_unique($types))];
    }

    private function take(string $token): bool
    {
        if (($this->tokens[$this->at] ?? null) !== $token) {
            return false;
        }
        $this->at++;

        return true;
    }

    /** @return array<string, mixed> */
    private function one(): array
    {
        if ($this->take('?')) {
            $schema = $this->one();

            return $schema === [] ? [] : self::any([$schema, ['type' => 'null']]);
        }
        if ($this->take('(')) {
            $schema = $this->schema();
            $this->take(')');
        } else {
            $schema = $this->named($this->tokens[$this->at++] ?? 'mixed');
        }
        while ($this->take('[]')) {
            $schema = ['type' => 'array', 'items' => (object) $schema];
        }

        return $schema;
    }

    /** @return array<string, mixed> */
    private function named(string $name): array
    {
        return match ($name) {
            'int', 'integer', 'positive-int', 'non-negative-int', 'negative-int' => ['type' => 'integer'],
            'float', 'double' => ['type' => 'number'],
            'bool', 'boolean' => ['type' => 'boolean'],
            'true', 'false' => ['const' => $name === 'true'],
            'string', 'non-empty-string', 'class-string', 'numeric-string' => ['type' => 'string'],
            'null', 'void' => ['type' => 'null'],
            'array', 'list', 'non-empty-array', 'non-empty-list', 'iterable' => $this->arrays($name),
            'self', 'static' => $this->scope?->class === null ? [] : ($this->classes)($this->scope->class),
            'mixed', 'object', 'scalar' => [],
            default => $this->other($name),
        };
    }

    /** @return array<string, mixed> */
    private function arrays(string $name): array
    {
        if ($this->take('{')) {
            return $this->members();
        }
        if (!$this->take('<')) {
            return str_contains($name, 'list') ? ['type' => 'array'] : ['type' => ['array', 'object']];
        }
        $key = $this->tokens[$this->at] ?? '';
        $types = [$this->schema()];
        while ($this->take(',')) {
            $types[] = $this->schema();
        }
        $this->take('>');
        $items = (object) end($types);

        return \count($types) === 2 && $key !== 'int'
            ? ['type' => 'object', 'additionalProperties' => $items]
            : ['type' => 'array', 'items' => $items];
    }

    /** @return array<string, mixed> */
    private function members(): array
    {
        $properties = [];
        $required = [];
        while (!$this->take('}') && isset($this->tokens[$this->at])) {
            $name = trim($this->tokens[$this->at++], "'\"");
            $optional = $this->take('?');
            $this->take(':');
            $properties[$name] = (object) $this->schema();
            if (!$optional) {
                $required[] = $name;
            }
            $this->take(',');
        }

        return ['type' => 'object', 'properties' => (object) $properties]
            + ($required === [] ? [] : ['required' => $required]);
    }

    /** @return array<string, mixed> */
    private function other(string $name): array
    {
        if (is_numeric($name)) {
            return ['const' => $name + 0];
        }
        if (str_starts_with($name, "'") || str_starts_with($name, '"')) {
            return ['const' => substr($name, 1, -1)];
        }
        $class = $this->scope?->resolve($name);
        if ($this->take('<')) {
            while (!$this->take('>') && isset($this->tokens[$this->at])) {
                $this->at++;
            }
        }

        return $class === null ? [] : ($this->classes)($class);
    }
}
