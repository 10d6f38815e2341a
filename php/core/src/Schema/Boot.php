<?php

declare(strict_types=1);

namespace Surus\Schema;

/**
 * What the server needs while it boots an application.
 *
 * @internal
 */
final class Boot
{
    /** @var array<class-string, array{string, list<array{class-string, string, list<string>}>, ?Rules}> */
    private static array $described = [];

    /**
     * The description of a class as JSON, the classes from which its objects are built, and its rules in PHP.
     *
     * @param class-string $class
     *
     * @return array{string, list<array{class-string, string, list<string>}>, ?Rules}
     */
    public static function input(string $class): array
    {
        if (!isset(self::$described[$class])) {
            $described = (new Describer())->describe($class);
            $json = json_encode($described['description'], JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION);
            self::$described[$class] = [$json, $described['natives'], Rules::of($class)];
        }

        return self::$described[$class];
    }
}
