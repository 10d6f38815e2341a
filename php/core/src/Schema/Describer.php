<?php

declare(strict_types=1);

namespace Surus\Schema;

use Surus\Http\UploadedFile;

/**
 * Describes classes for the server's schema compiler, by reflection, once at boot.
 *
 * @internal
 */
final class Describer
{
    /** @var array<class-string, int> */
    private array $indexes = [];

    /** @var list<array<string, mixed>> */
    private array $classes = [];

    /** @var list<array{class-string, string, list<string>}> */
    private array $natives = [];

    private TypeDescriber $types;

    public function __construct()
    {
        $this->types = new TypeDescriber($this->index(...));
    }

    /**
     * @param class-string $class
     *
     * @return array{
     *     description: array<string, mixed>,
     *     natives: list<array{class-string, string, list<string>}>,
     * } natives, for building the objects: class, kind, and names of cases
     */
    public function describe(string $class): array
    {
        $root = $this->index($class);
        $input = Attributes::first(new \ReflectionClass($class), Input::class);
        $description = ['root' => $root, 'classes' => $this->classes];
        if ($input?->maxBytes !== null) {
            $description['max_bytes'] = $input->maxBytes;
        }
        if ($input?->maxDepth !== null) {
            $description['max_depth'] = $input->maxDepth;
        }

        return ['description' => $description, 'natives' => $this->natives];
    }

    /**
     * The number of a class; describes it if it was not described before.
     *
     * @param class-string $name
     */
    private function index(string $name): int
    {
        $class = new \ReflectionClass($name);
        $name = $class->getName();
        if (isset($this->indexes[$name])) {
            return $this->indexes[$name];
        }
        $index = \count($this->classes);
        $this->indexes[$name] = $index;
        $common = ['title' => Titles::of($class)] + PhpDoc::summaryOf($class->getDocComment());
        // Reserves the number while the class refers to others, or to itself.
        $this->classes[] = $common + ['kind' => 'date'];
        if ($class->isEnum()) {
            $this->natives[$index] = [$name, 'enum', array_column($name::cases(), 'name')];
            $this->classes[$index] = $common + ['kind' => 'enum', 'values' => $this->values($name)];
        } elseif ($name === UploadedFile::class) {
            $this->natives[$index] = [$name, 'file', []];
            $this->classes[$index] = $common + ['kind' => 'file'];
        } elseif ($class->implementsInterface(\DateTimeInterface::class)) {
            $this->natives[$index] = [$class->isInterface() ? \DateTimeImmutable::class : $name, 'date', []];
        } else {
            $this->natives[$index] = [$name, 'object', []];
            $this->classes[$index] = $common + $this->describeObject($class);
        }

        return $index;
    }

    /**
     * @param class-string<\UnitEnum> $enum
     *
     * @return list<int|string>
     */
    private function values(string $enum): array
    {
        return array_map(
            static fn (\UnitEnum $case) => $case instanceof \BackedEnum ? $case->value : $case->name,
            $enum::cases(),
        );
    }

    /**
     * @param \ReflectionClass<object> $class
     *
     * @return array<string, mixed>
     */
    private function describeObject(\ReflectionClass $class): array
    {
        $constructor = $class->getConstructor();
        $place = $class->isInternal() ? 'PHP' : $class->getFileName() . ':' . $class->getStartLine();
        if (!$class->isInstantiable()) {
            throw new Undescribable("$place: {$class->getName()} cannot be input: it cannot be instantiated");
        }
        if ($constructor === null || $class->isInternal()) {
            throw new Undescribable("$place: {$class->getName()} cannot be input: it has no constructor of its own");
        }
        $properties = array_map($this->describeParameter(...), $constructor->getParameters());
        $names = array_count_values(array_column($properties, 'name'));
        foreach ($names as $name => $count) {
            if ($count > 1) {
                throw new Undescribable("$place: two parameters of {$class->getName()} are called \"$name\" in input");
            }
        }
        $input = Attributes::first($class, Input::class);

        return array_filter([
            'kind' => 'object',
            'properties' => $properties,
            'strict' => $input->strict ?? false,
            'example' => $input?->example,
        ], static fn (mixed $value) => $value !== null);
    }

    /** @return array<string, mixed> */
    private function describeParameter(\ReflectionParameter $parameter): array
    {
        $function = $parameter->getDeclaringFunction();
        $class = $parameter->getDeclaringClass()?->getName();
        $place = "{$function->getFileName()}:{$function->getStartLine()}:"
            . " parameter \${$parameter->getName()} of $class::__construct()";
        try {
            $type = $this->types->describe($parameter);
        } catch (Undescribable $error) {
            throw new Undescribable("$place: {$error->getMessage()}");
        }
        $field = Attributes::first($parameter, Field::class);
        $optional = $parameter->isDefaultValueAvailable();

        return array_filter([
            'name' => $field->name ?? $parameter->getName(),
            'type' => $type,
            'required' => !$optional,
            'default' => $optional ? $this->constant($parameter, $type) : null,
            'description' => $field->description ?? PhpDoc::of($parameter)['text'] ?? null,
            'example' => $field?->example,
            'deprecated' => $field->deprecated ?? false,
            'place' => $place,
        ], static fn (mixed $value) => $value !== null);
    }

    /**
     * A default value for documents; null if it cannot be represented in JSON.
     *
     * @param array<string, mixed> $type
     */
    private function constant(\ReflectionParameter $parameter, array $type): mixed
    {
        $default = $parameter->getDefaultValue();

        return match (true) {
            $default === Undefined::Value => null,
            $default instanceof \BackedEnum => $default->value,
            $default instanceof \UnitEnum => $default->name,
            \is_object($default) => null,
            $default === [] && $type['type'] === 'map' => new \stdClass(),
            default => $default,
        };
    }
}
