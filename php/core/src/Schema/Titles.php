<?php

declare(strict_types=1);

namespace Surus\Schema;

/**
 * Names of classes in documents: short, and different for different classes.
 *
 * @internal
 */
final class Titles
{
    /** @var array<string, class-string> */
    private static array $taken = [];

    /** @param \ReflectionClass<object> $class */
    public static function of(\ReflectionClass $class): string
    {
        $name = $class->getName();
        $short = $class->isAnonymous() ? 'Anonymous' : $class->getShortName();
        $owner = self::$taken[$short] ??= $name;

        return $owner === $name ? $short : preg_replace('/[^A-Za-z0-9_.-]+/', '.', $name);
    }
}
