<?php

declare(strict_types=1);

namespace Surus\Schema;

/**
 * JSON Schema of handlers' results, from types in signatures and doc comments.
 *
 * @internal
 */
final class TypeSchemas
{
    /** @var array<string, array<string, mixed>> */
    private array $schemas = [];

    /** @var array<class-string, string> */
    private array $names = [];

    /** @var array<string, true> */
    private array $reserved = [];

    /** @return array<string, array<string, mixed>> of classes, by name */
    public function schemas(): array
    {
        return $this->schemas;
    }

    /** Reserves the name of an input class, so that schemas of results do not use it. */
    public function reserve(string $class): void
    {
        $this->reserved[$class] = true;
    }

    /** @return array<string, mixed> */
    public function ofReflection(?\ReflectionType $type, ?Scope $scope): array
    {
        return $type === null ? [] : $this->ofDoc((string) $type, $scope);
    }

    /**
     * @param ?Scope $scope resolves names of classes
     *
     * @return array<string, mixed>
     */
    public function ofDoc(string $type, ?Scope $scope): array
    {
        return (new DocType($type, $scope, $this->ofClass(...)))->schema();
    }

    /** @return array<string, mixed> */
    private function ofClass(string $name): array
    {
        if (!class_exists($name) && !interface_exists($name) && !enum_exists($name)) {
            return [];
        }
        $class = new \ReflectionClass($name);
        if ($class->implementsInterface(\DateTimeInterface::class) && !$class->implementsInterface(\JsonSerializable::class)) {
            return ['type' => 'string', 'format' => 'date-time'];
        }
        if ($class->isInternal() && !$class->isEnum()) {
            return ['type' => 'object'];
        }
        if (!isset($this->names[$name])) {
            $title = Titles::of($class);
            $this->names[$name] = isset($this->reserved[$name]) && !$class->isEnum() ? "{$title}Output" : $title;
            // Reserves the name while the class refers to itself.
            $this->schemas[$this->names[$name]] = [];
            $this->schemas[$this->names[$name]] = $class->isEnum() ? $this->ofEnum($name) : $this->ofObject($class);
        }

        return ['$ref' => '#/components/schemas/' . $this->names[$name]];
    }

    /** @return array<string, mixed> */
    private function ofEnum(string $name): array
    {
        $values = array_map(
            static fn (\UnitEnum $case) => $case instanceof \BackedEnum ? $case->value : $case->name,
            $name::cases(),
        );

        return ['type' => \is_int($values[0] ?? '') ? 'integer' : 'string', 'enum' => $values];
    }

    /**
     * The result of `json_encode`: public properties, or the return type of its jsonSerialize().
     *
     * @param \ReflectionClass<object> $class
     *
     * @return array<string, mixed>
     */
    private function ofObject(\ReflectionClass $class): array
    {
        $summary = PhpDoc::summaryOf($class->getDocComment());
        if ($class->implementsInterface(\JsonSerializable::class)) {
            $method = $class->getMethod('jsonSerialize');
            $type = PhpDoc::returned($method->getDocComment()) ?? (string) $method->getReturnType();

            return $summary + ($type === '' ? [] : $this->ofDoc($type, Scope::of($method)));
        }
        $properties = [];
        foreach ($class->getProperties(\ReflectionProperty::IS_PUBLIC) as $property) {
            if (!$property->isStatic()) {
                $properties[$property->getName()] = (object) $this->ofProperty($property);
            }
        }

        return $summary + ['type' => 'object', 'properties' => (object) $properties]
            + ($properties === [] ? [] : ['required' => array_keys($properties)]);
    }

    /** @return array<string, mixed> */
    private function ofProperty(\ReflectionProperty $property): array
    {
        $doc = PhpDoc::ofProperty($property);
        $type = $doc['type'] ?? (string) $property->getType();

        return ($type === '' ? [] : $this->ofDoc($type, Scope::of($property->getDeclaringClass())))
            + (isset($doc['text']) ? ['description' => $doc['text']] : []);
    }
}
