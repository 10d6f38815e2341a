<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\Attribute\Scoped;
use Surus\BootError;
use Surus\Container;
use Surus\Http\Request;
use Surus\ServiceNotFound;

/**
 * How a service is made. Each constructor is read once.
 *
 * @internal
 */
final class Recipe
{
    /** @var list<string> classes whose constructors are being read */
    private static array $pending = [];

    /** @param \Closure(Container, ?Request): mixed $make */
    public function __construct(public readonly \Closure $make, public readonly bool $scoped)
    {
    }

    public static function isMakeable(string $id): bool
    {
        return class_exists($id) && (new \ReflectionClass($id))->isInstantiable();
    }

    /** @param ?bool $scoped null: determined by the class and the services that it needs */
    public static function of(Container $container, string $class, ?bool $scoped): self
    {
        if (!class_exists($class) || !($reflection = new \ReflectionClass($class))->isInstantiable()) {
            throw new ServiceNotFound("There is no service $class: declare one");
        }
        if (in_array($class, self::$pending, true)) {
            throw new BootError('Services need each other: ' . implode(', ', [...self::$pending, $class]));
        }
        self::$pending[] = $class;
        try {
            $needs = array_map(
                static fn (\ReflectionParameter $parameter): array => self::need($container, $parameter, $reflection),
                $reflection->getConstructor()?->getParameters() ?? [],
            );
        } finally {
            array_pop(self::$pending);
        }
        $own = array_keys(array_column($needs, 2, 0), true, true);
        if ($scoped === false && $own !== []) {
            throw new BootError("all requests would share it, but each has its own $own[0], which it needs: declare it with scoped()");
        }
        $scoped ??= $reflection->getAttributes(Scoped::class) !== [] || in_array(true, array_column($needs, 2), true);

        return new self(static function (Container $container, ?Request $request) use ($class, $needs): object {
            $arguments = [];
            foreach ($needs as [$id, $default]) {
                $arguments[] = $id === null ? $default : $container->get($id, $request);
            }

            return new $class(...$arguments);
        }, $scoped);
    }

    /**
     * @param \ReflectionClass<object> $class
     *
     * @return array{?string, mixed, bool} a service, or a value, and whether it is scoped
     */
    private static function need(Container $container, \ReflectionParameter $parameter, \ReflectionClass $class): array
    {
        $type = $parameter->getType();
        $optional = $parameter->isDefaultValueAvailable() || $type?->allowsNull() === true;
        $id = $type instanceof \ReflectionNamedType && !$type->isBuiltin() ? $type->getName() : null;
        // A class of PHP itself is a service only if it is declared, or if the parameter is required: where there is a
        // default, "new DateTimeZone()" is not intended.
        $own = $id !== null && class_exists($id) && (new \ReflectionClass($id))->isInternal();
        if ($id !== null && $container->has($id) && !($own && $optional && !$container->isDeclared($id))) {
            return [$id, null, $container->isScoped($id)];
        }
        if ($optional) {
            return [null, $parameter->isDefaultValueAvailable() ? $parameter->getDefaultValue() : null, false];
        }
        $constructor = $class->getConstructor();
        throw new BootError(($constructor === null || $class->isInternal() ? '' : Origin::of($constructor) . ': ')
            . "parameter \${$parameter->getName()}" . ($type === null || $id === null ? '' : " ($type)")
            . " of the constructor of {$class->getName()} is no service and has no default" . self::missing($type)
            . self::wanted());
    }

    /** The message part for the type of a parameter that is an interface, or a class that does not exist. */
    public static function missing(?\ReflectionType $type): string
    {
        $name = $type instanceof \ReflectionNamedType && !$type->isBuiltin() ? $type->getName() : null;
        if ($name === null || in_array($name, ['self', 'static', 'parent'], true)) {
            return '';
        }

        return match (true) {
            class_exists($name) || enum_exists($name) => '',
            interface_exists($name) => " ($name is an interface: declare which class it is, with singleton() or scoped())",
            default => " (there is no class $name: is its import missing?)",
        };
    }

    /** The message part that names the service for which another one is made. */
    private static function wanted(): string
    {
        $declare = ': declare ' . self::$pending[count(self::$pending) - 1] . ' with singleton() or scoped()';

        return $declare . (count(self::$pending) < 2 ? '' : ' (' . implode(' needs ', self::$pending) . ')');
    }
}
