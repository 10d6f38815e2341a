<?php

declare(strict_types=1);

namespace Surus\Schema;

use Surus\BootError;
use Surus\Internal\Origin;

/**
 * @internal
 */
final class Attributes
{
    /**
     * The attributes as objects; arguments that the attribute class does not accept are an error at boot.
     *
     * @template T of object
     *
     * @param \ReflectionClass<object>|\ReflectionParameter|\ReflectionFunctionAbstract $of
     * @param class-string<T> $class
     *
     * @return list<T>
     */
    public static function all(
        \ReflectionClass|\ReflectionParameter|\ReflectionFunctionAbstract $of,
        string $class,
    ): array {
        return array_map(
            static function (\ReflectionAttribute $attribute) use ($of): object {
                try {
                    return $attribute->newInstance();
                } catch (\Error | \InvalidArgumentException $error) {
                    $name = substr((string) strrchr('\\' . $attribute->getName(), '\\'), 1);
                    throw new BootError(Origin::of($of) . ": #[$name]: {$error->getMessage()}", 0, $error);
                }
            },
            $of->getAttributes($class, \ReflectionAttribute::IS_INSTANCEOF),
        );
    }

    /**
     * @template T of object
     *
     * @param \ReflectionClass<object>|\ReflectionParameter|\ReflectionFunctionAbstract $of
     * @param class-string<T> $class
     *
     * @return T|null
     */
    public static function first(
        \ReflectionClass|\ReflectionParameter|\ReflectionFunctionAbstract $of,
        string $class,
    ): ?object {
        return self::all($of, $class)[0] ?? null;
    }
}
