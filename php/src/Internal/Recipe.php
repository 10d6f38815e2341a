<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\Attribute\Scoped;
use Surus\BootError;
use Surus\Container;
use Surus\Http\Request;
use Surus\ServiceNotFound;

/**
 * How a service is made. Constructors are looked at once.
 *
 * @internal
 */
final class Recipe
{
    /** @var list<string> classes whose constructors are being looked at */
    private static array $pending = [];

    /** @param \Closure(Container, ?Request): mixed $make */
    public function __construct(public readonly \Closure $make, public readonly bool $scoped)
    {
    }

    public static function isMakeable(string $id): bool
    {
        return class_exists($id) && (new \ReflectionClass($id))->isInstantiable();
    }

    /** @param ?bool $scoped null: as the class and what it needs are */
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
        if ($type instanceof \ReflectionNamedType && !$type->isBuiltin() && $container->has($type->getName())) {
            return [$type->getName(), null, $container->isScoped($type->getName())];
        }
        if ($parameter->isDefaultValueAvailable()) {
            return [null, $parameter->getDefaultValue(), false];
        }
        if ($type?->allowsNull()) {
            return [null, null, false];
        }
        $constructor = $class->getConstructor();
        throw new BootError(($constructor === null ? '' : Origin::of($constructor) . ': ')
            . "parameter \${$parameter->getName()} of the constructor of {$class->getName()} is no service and has no default");
    }
}
