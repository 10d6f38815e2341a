<?php

declare(strict_types=1);

namespace Surus\Schema;

/**
 * @internal
 */
final class Attributes
{
    /**
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
            static fn (\ReflectionAttribute $attribute) => $attribute->newInstance(),
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
