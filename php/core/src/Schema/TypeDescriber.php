<?php

declare(strict_types=1);

namespace Surus\Schema;

use Surus\Http\UploadedFile;

/**
 * Describes types of parameters, and their attributes, for the schema compiler.
 *
 * @internal
 */
final class TypeDescriber
{
    /** @param \Closure(class-string): int $index returns the number of a class that a type refers to */
    public function __construct(private readonly \Closure $index)
    {
    }

    /** @return array<string, mixed> */
    public function describe(\ReflectionParameter $parameter): array
    {
        if ($parameter->isVariadic() || $parameter->isPassedByReference()) {
            throw new Undescribable('a variadic parameter or a reference cannot be input');
        }
        $each = PhpDoc::eachOf($parameter);
        $doc = PhpDoc::of($parameter)['type'] ?? '';
        if ($each === null && preg_match('/[{<]|\[\]/', $doc) === 1 && preg_match('/\b(array|iterable)\b/', (string) $parameter->getType()) === 1) {
            throw new Undescribable("the type \"" . preg_replace('/\s+/', ' ', $doc) . '" of its doc comment cannot be validated: '
                . (str_contains($doc, '{') ? 'declare a class with these members' : 'is a class in it not there, or its import missing?')
                . ' (or say array, which takes anything)');
        }
        $this->checkUndefined($parameter);
        $type = $this->of($parameter->getType(), $parameter->getDeclaringClass(), $each);
        foreach (Attributes::all($parameter, Constraint::class) as $constraint) {
            $type = $this->constrain($type, $constraint);
        }

        return $type;
    }

    /** Checks that a parameter which may be Undefined has this as its default. */
    private function checkUndefined(\ReflectionParameter $parameter): void
    {
        $type = $parameter->getType();
        $types = $type instanceof \ReflectionUnionType ? $type->getTypes() : [];
        $names = array_map(static fn (\ReflectionType $each): string => (string) $each, $types);
        $is = $parameter->isDefaultValueAvailable() && $parameter->getDefaultValue() === Undefined::Value;
        if (\in_array(Undefined::class, $names, true) && !$is) {
            throw new Undescribable('what may be Undefined needs the default Undefined::Value');
        }
    }

    /**
     * @param \ReflectionClass<object>|null $scope
     *
     * @return array<string, mixed>
     */
    private function of(?\ReflectionType $type, ?\ReflectionClass $scope, ?Each $each): array
    {
        if ($type === null) {
            return ['type' => 'mixed', 'nullable' => true];
        }
        if ($type instanceof \ReflectionNamedType) {
            return $this->named($type->getName(), $scope, $each) + ['nullable' => $type->allowsNull()];
        }
        if (!$type instanceof \ReflectionUnionType) {
            throw new Undescribable("the type $type cannot be input");
        }
        $alternatives = [];
        foreach ($type->getTypes() as $alternative) {
            if (!$alternative instanceof \ReflectionNamedType) {
                throw new Undescribable("the type $type cannot be input");
            }
            if (!\in_array($alternative->getName(), ['null', Undefined::class], true)) {
                $alternatives[] = $this->named($alternative->getName(), $scope, $each);
            }
        }
        if (\count($alternatives) === 1) {
            return $alternatives[0] + ['nullable' => $type->allowsNull()];
        }

        return ['type' => 'union', 'any' => $alternatives, 'nullable' => $type->allowsNull()];
    }

    /**
     * @param \ReflectionClass<object>|null $scope
     *
     * @return array<string, mixed>
     */
    private function named(string $name, ?\ReflectionClass $scope, ?Each $each): array
    {
        return match ($name) {
            'int' => ['type' => 'integer'],
            'float' => ['type' => 'number'],
            'bool' => ['type' => 'boolean'],
            'string' => ['type' => 'string'],
            'mixed' => ['type' => 'mixed'],
            'null' => ['type' => 'null'],
            'array' => $this->arrays($each),
            'self', 'static' => ['type' => 'object', 'class' => ($this->index)($scope?->getName() ?? '')],
            default => $this->classOf($name),
        };
    }

    /** @return array<string, mixed> */
    private function arrays(?Each $each): array
    {
        if ($each === null) {
            $items = ['type' => 'mixed', 'nullable' => true];

            return ['type' => 'union', 'any' => [
                ['type' => 'list', 'items' => $items],
                ['type' => 'map', 'items' => $items],
            ]];
        }
        $name = ltrim($each->type, '?');
        $items = $this->named($name, null, null);
        if ($each->type !== $name || $name === 'mixed') {
            $items['nullable'] = true;
        }
        foreach ($each->rules as $rule) {
            $items = match (true) {
                $rule instanceof Constraint => $this->constrain($items, $rule),
                $rule instanceof AnyRule => $items,
                default => throw new Undescribable('a rule of #[Each] is a Constraint or a Rule, not ' . get_debug_type($rule)),
            };
        }

        return ['type' => $each->map ? 'map' : 'list', 'items' => $items];
    }

    /** @return array<string, mixed> */
    private function classOf(string $name): array
    {
        if ($name === Undefined::class) {
            throw new Undescribable('Undefined is no type of its own: declare another one beside it, as in string|Undefined');
        }
        if (enum_exists($name)) {
            return ['type' => 'enum', 'class' => ($this->index)($name)];
        }
        if (!class_exists($name) && !interface_exists($name)) {
            throw new Undescribable("there is no class or type $name that could be input");
        }
        if ($name === UploadedFile::class) {
            return ['type' => 'file', 'class' => ($this->index)($name)];
        }
        if (is_a($name, \DateTimeInterface::class, true)) {
            return ['type' => 'date', 'class' => ($this->index)($name), 'format' => 'date-time'];
        }

        return ['type' => 'object', 'class' => ($this->index)($name)];
    }

    /**
     * @param array<string, mixed> $type
     *
     * @return array<string, mixed>
     */
    private function constrain(array $type, Constraint $constraint): array
    {
        $fits = static fn (array $each) => \in_array($each['type'], $constraint->shapes(), true);
        if ($fits($type)) {
            $keywords = array_filter($constraint->keywords(), static fn (mixed $value) => $value !== null);
            if ($constraint->message !== null) {
                $type['messages'] = array_fill_keys(array_keys($keywords), $constraint->message)
                    + ($type['messages'] ?? []);
            }

            return $keywords + $type;
        }
        if ($type['type'] !== 'union' || array_filter($type['any'], $fits) === []) {
            $name = (new \ReflectionClass($constraint))->getShortName();

            throw new Undescribable("#[$name] has no meaning for its type");
        }
        foreach ($type['any'] as $i => $alternative) {
            if ($fits($alternative)) {
                $type['any'][$i] = $this->constrain($alternative, $constraint);
            }
        }

        return $type;
    }
}
