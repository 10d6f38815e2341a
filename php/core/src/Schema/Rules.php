<?php

declare(strict_types=1);

namespace Surus\Schema;

use Surus\Internal\Origin;

/**
 * The rules written in PHP of a class and of its properties, which are checked after all others.
 *
 * @internal
 */
final class Rules
{
    /**
     * @param list<AnyRule> $own rules of the object itself
     * @param list<array{string, int, \Closure(object): mixed, list<AnyRule>, ?self, list<AnyRule>}> $properties name in
     *     input, number of the parameter, function that reads its value, its rules, those of the objects in it, and
     *     those of each element
     */
    /** @var array<class-string, list<string>> the services of each rule that needs some */
    private static array $services = [];

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
     * @param array<class-string, self> $known including unfinished ones
     */
    private static function make(string $class, array &$known): self
    {
        if (isset($known[$class])) {
            return $known[$class];
        }
        $reflection = new \ReflectionClass($class);
        $rules = $known[$class] = new self(self::declared($reflection), []);
        foreach ($reflection->getConstructor()?->getParameters() ?? [] as $parameter) {
            $own = self::declared($parameter);
            $each = array_values(array_filter(PhpDoc::eachOf($parameter)->rules ?? [], static fn (object $rule): bool => $rule instanceof AnyRule));
            array_walk($each, self::lookAt(...));
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

    /**
     * @param \ReflectionClass<object>|\ReflectionParameter $of
     *
     * @return list<AnyRule>
     */
    private static function declared(\ReflectionClass|\ReflectionParameter $of): array
    {
        $rules = Attributes::all($of, AnyRule::class);
        array_walk($rules, self::lookAt(...));

        return $rules;
    }

    /** Records the services that a rule needs. */
    private static function lookAt(AnyRule $rule): void
    {
        if (!$rule instanceof ServiceRule || isset(self::$services[$rule::class])) {
            return;
        }
        $class = new \ReflectionClass($rule);
        $wrong = static fn (string $why): Undescribable => new Undescribable(Origin::of($class) . ": the rule {$class->getName()} $why");
        $check = $class->hasMethod('check') ? $class->getMethod('check') : throw $wrong('has no method check($value, $subject, …services)');
        $services = [];
        foreach (\array_slice($check->getParameters(), 2) as $parameter) {
            $type = $parameter->getType();
            $services[] = $type instanceof \ReflectionNamedType && !$type->isBuiltin() ? $type->getName()
                : throw $wrong("asks for \${$parameter->getName()}, whose type is no class: it cannot be a service");
        }
        self::$services[$rule::class] = $services;
    }

    /** @return array<class-string, list<string>> the services that rules of this class, or within it, need, by rule */
    public function services(): array
    {
        $found = [];
        $seen = new \SplObjectStorage();
        $visit = static function (self $rules) use (&$visit, &$found, $seen): void {
            if ($seen->contains($rules)) {
                return;
            }
            $seen->attach($rules);
            foreach ([$rules->own, ...array_column($rules->properties, 3), ...array_column($rules->properties, 5)] as $list) {
                foreach ($list as $rule) {
                    $found += isset(self::$services[$rule::class]) ? [$rule::class => self::$services[$rule::class]] : [];
                }
            }
            array_map($visit, array_filter(array_column($rules->properties, 4)));
        };
        $visit($this);

        return $found;
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
     * A JSON list of violations, or null. Default values are not checked: the developer has written them.
     *
     * @param array<array-key, mixed> $defaults which parameters have their defaults, by number: true; for an object or
     *     an array that contains some, an array of the same kind
     * @param ?\Closure(string): mixed $services finds the services of the request
     */
    public function check(object $object, array $defaults, ?\Closure $services = null): ?string
    {
        $violations = [];
        $this->collect($object, $defaults, '', $violations, $services);

        return $violations === [] ? null : json_encode($violations, JSON_THROW_ON_ERROR);
    }

    /**
     * @param array<array-key, mixed> $defaults
     * @param list<array{pointer: string, rule: string, message: string}> $violations
     */
    private function collect(object $object, array $defaults, string $pointer, array &$violations, ?\Closure $services): void
    {
        self::ask($this->own, $object, $object, $pointer, $violations, $services);
        foreach ($this->properties as [$name, $number, $read, $rules, $nested, $ofEach]) {
            $within = $defaults[$number] ?? [];
            if (!\is_array($within)) {
                continue;
            }
            $value = $read($object);
            $at = $pointer . '/' . self::escape($name);
            self::ask($rules, $value, $object, $at, $violations, $services);
            foreach ($ofEach !== [] && \is_array($value) ? $value : [] as $key => $item) {
                self::ask($ofEach, $item, $object, $at . '/' . self::escape((string) $key), $violations, $services);
            }
            if ($nested === null) {
                continue;
            }
            foreach (\is_array($value) ? $value : ['' => $value] as $key => $each) {
                if (!\is_object($each)) {
                    continue;
                }
                if (\is_array($value)) {
                    $nested->collect($each, $within[$key] ?? [], $at . '/' . self::escape((string) $key), $violations, $services);
                } else {
                    $nested->collect($each, $within, $at, $violations, $services);
                }
            }
        }
    }

    /**
     * @param list<AnyRule> $rules
     * @param list<array{pointer: string, rule: string, message: string}> $violations
     */
    private static function ask(array $rules, mixed $value, object $subject, string $pointer, array &$violations, ?\Closure $services): void
    {
        foreach ($rules as $rule) {
            $needed = $services === null ? [] : array_map($services, self::$services[$rule::class] ?? []);
            $message = $rule->check($value, $subject, ...$needed);
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
