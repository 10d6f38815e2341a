<?php

declare(strict_types=1);

namespace Surus\Schema;

/**
 * The second phase: rules written in PHP, of a class and of what is in it.
 *
 * @internal
 */
final class Rules
{
    /**
     * @param list<Rule> $own of the object itself
     * @param list<array{string, int, \Closure(object): mixed, list<Rule>, ?self, list<Rule>}> $properties name in
     *     input, number of the parameter, how its value is read, its rules, those of the objects in it, and those of
     *     each element
     */
    private function __construct(
        private array $own,
        private array $properties,
    ) {
    }

    /**
     * Null if there are no such rules.
     *
     * @param class-string $class
     */
    public static function of(string $class): ?self
    {
        $known = [];
        $rules = self::make($class, $known);
        foreach ($known as $each) {
            $ofProperties = [...array_column($each->properties, 3), ...array_column($each->properties, 5)];
            if ($each->own !== [] || array_filter($ofProperties) !== []) {
                return $rules;
            }
        }

        return null;
    }

    /**
     * @param class-string $class
     * @param array<class-string, self> $known also those that are being made
     */
    private static function make(string $class, array &$known): self
    {
        if (isset($known[$class])) {
            return $known[$class];
        }
        $reflection = new \ReflectionClass($class);
        $rules = $known[$class] = new self(Attributes::all($reflection, Rule::class), []);
        foreach ($reflection->getConstructor()?->getParameters() ?? [] as $parameter) {
            $own = Attributes::all($parameter, Rule::class);
            $each = array_values(array_filter(PhpDoc::eachOf($parameter)->rules ?? [], static fn (object $rule): bool => $rule instanceof Rule));
            $nested = self::nested($parameter, $known);
            if ($own === [] && $each === [] && $nested === null) {
                continue;
            }
            $name = $parameter->getName();
            if (!$reflection->hasProperty($name)) {
                if ($own === [] && $each === []) {
                    continue;
                }

                throw new Undescribable(
                    "{$reflection->getFileName()}:{$reflection->getConstructor()->getStartLine()}: parameter \$$name of"
                    . " $class::__construct(): a rule needs a property of the same name, to read the value from",
                );
            }
            $read = \Closure::bind(static fn (object $from): mixed => $from->$name, null, $class);
            $input = Attributes::first($parameter, Field::class)->name ?? $name;
            $rules->properties[] = [$input, $parameter->getPosition(), $read, $own, $nested, $each];
        }

        return $rules;
    }

    /** @param array<class-string, self> $known */
    private static function nested(\ReflectionParameter $parameter, array &$known): ?self
    {
        $each = PhpDoc::eachOf($parameter)?->type;
        $type = $parameter->getType();
        $types = $type instanceof \ReflectionUnionType ? $type->getTypes() : [$type];
        $classes = array_values(array_filter($types, static fn (?\ReflectionType $one): bool => $one instanceof \ReflectionNamedType
            && !$one->isBuiltin() && $one->getName() !== Undefined::class));
        $name = $each === null ? (\count($classes) === 1 ? $classes[0]->getName() : null) : ltrim($each, '?');
        if ($name === 'self') {
            $name = $parameter->getDeclaringClass()?->getName();
        }
        $scalar = ['int', 'float', 'bool', 'string', 'mixed'];
        if ($name === null || \in_array($name, $scalar, true) || !class_exists($name) || enum_exists($name)) {
            return null;
        }

        return (new \ReflectionClass($name))->isInternal() ? null : self::make($name, $known);
    }

    /**
     * A JSON list of violations, or null. What the client has not sent is the developer's: nobody is asked about it.
     *
     * @param array<array-key, mixed> $defaults which parameters have their defaults, by number: true, and for an object
     *     or an array with such an array of the same kind
     */
    public function check(object $object, array $defaults): ?string
    {
        $violations = [];
        $this->collect($object, $defaults, '', $violations);

        return $violations === [] ? null : json_encode($violations, JSON_THROW_ON_ERROR);
    }

    /**
     * @param array<array-key, mixed> $defaults
     * @param list<array{pointer: string, rule: string, message: string}> $violations
     */
    private function collect(object $object, array $defaults, string $pointer, array &$violations): void
    {
        self::ask($this->own, $object, $object, $pointer, $violations);
        foreach ($this->properties as [$name, $number, $read, $rules, $nested, $ofEach]) {
            $within = $defaults[$number] ?? [];
            if (!\is_array($within)) {
                continue;
            }
            $value = $read($object);
            $at = $pointer . '/' . self::escape($name);
            self::ask($rules, $value, $object, $at, $violations);
            foreach ($ofEach !== [] && \is_array($value) ? $value : [] as $key => $item) {
                self::ask($ofEach, $item, $object, $at . '/' . self::escape((string) $key), $violations);
            }
            if ($nested === null) {
                continue;
            }
            foreach (\is_array($value) ? $value : ['' => $value] as $key => $each) {
                if (!\is_object($each)) {
                    continue;
                }
                if (\is_array($value)) {
                    $nested->collect($each, $within[$key] ?? [], $at . '/' . self::escape((string) $key), $violations);
                } else {
                    $nested->collect($each, $within, $at, $violations);
                }
            }
        }
    }

    /**
     * @param list<Rule> $rules
     * @param list<array{pointer: string, rule: string, message: string}> $violations
     */
    private static function ask(array $rules, mixed $value, object $subject, string $pointer, array &$violations): void
    {
        foreach ($rules as $rule) {
            $message = $rule->check($value, $subject);
            if ($message !== null) {
                $name = strrchr('\\' . $rule::class, '\\');
                $violations[] = ['pointer' => $pointer, 'rule' => lcfirst(substr($name, 1)), 'message' => $message];
            }
        }
    }

    private static function escape(string $key): string
    {
        return str_replace(['~', '/'], ['~0', '~1'], $key);
    }
}
