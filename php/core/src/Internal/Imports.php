<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\BootError;
use Surus\Schema\Scope;

/**
 * Finds attributes whose class does not exist. PHP ignores them, so that a rule, a source of input or a route would be
 * missing without a message. Attributes of packages that are not installed are ignored: their names were imported.
 *
 * @internal
 */
final class Imports
{
    private const OURS = [
        'Surus\\Schema' => ['Date', 'Each', 'Email', 'Field', 'File', 'Input', 'Items', 'Length', 'Operation', 'Pattern', 'Range', 'Returns', 'Url', 'Uuid'],
        'Surus\\Attribute' => ['Body', 'Cookie', 'Delete', 'Form', 'Get', 'Group', 'Header', 'Patch', 'Post', 'Put', 'Query', 'Route', 'Scoped'],
    ];

    /** Attributes of newer PHP versions. */
    private const PHPS = ['override', 'deprecated', 'nodiscard', 'delayedtargetvalidation'];

    /** @var array<class-string, true> classes that were checked */
    private static array $known = [];

    /** @param \ReflectionClass<object>|\ReflectionParameter|\ReflectionProperty|\ReflectionFunctionAbstract $of */
    public static function check(\ReflectionClass|\ReflectionParameter|\ReflectionProperty|\ReflectionFunctionAbstract $of): void
    {
        foreach ($of->getAttributes() as $attribute) {
            $name = $attribute->getName();
            if (!class_exists($name)) {
                self::refuse($name, $of);
            }
        }
    }

    /**
     * Checks a class and its constructor's parameters, including their classes.
     *
     * @param \ReflectionClass<object> $class
     */
    public static function checkClass(\ReflectionClass $class): void
    {
        if ($class->isInternal() || isset(self::$known[$class->getName()])) {
            return;
        }
        self::$known[$class->getName()] = true;
        self::check($class);
        foreach ($class->getProperties() as $property) {
            if (!$property->isPromoted()) {
                self::check($property);
            }
        }
        foreach ($class->getConstructor()?->getParameters() ?? [] as $parameter) {
            self::check($parameter);
            $type = $parameter->getType();
            if ($type instanceof \ReflectionNamedType && class_exists($type->getName())) {
                self::checkClass(new \ReflectionClass($type->getName()));
            }
        }
    }

    /** @param \ReflectionClass<object>|\ReflectionParameter|\ReflectionProperty|\ReflectionFunctionAbstract $of */
    private static function refuse(string $name, \ReflectionClass|\ReflectionParameter|\ReflectionProperty|\ReflectionFunctionAbstract $of): void
    {
        [$namespace, $short] = self::split($name);
        $code = match (true) {
            $of instanceof \ReflectionParameter => $of->getDeclaringFunction(),
            $of instanceof \ReflectionProperty => $of->getDeclaringClass(),
            default => $of,
        };
        $isOurs = str_starts_with($name, 'Surus\\');
        // A name imported from another namespace belongs to a package, which may be missing if it is not needed.
        if (!$isOurs && strcasecmp($namespace, Scope::of($code)->space()) !== 0) {
            return;
        }
        if ($namespace === '' && in_array(strtolower($short), self::PHPS, true)) {
            return;
        }
        $place = match (true) {
            $of instanceof \ReflectionProperty => Origin::of($of->getDeclaringClass()) . ": property \${$of->getName()}",
            default => Origin::of($of),
        };
        $import = self::meant($short);
        throw new BootError("$place: there is no attribute #[$short] ($name)"
            . ($import === null ? ': is its import missing?' : ": add \"use $import;\""));
    }

    /** @return array{string, string} */
    private static function split(string $name): array
    {
        $at = strrpos($name, '\\');

        return $at === false ? ['', $name] : [substr($name, 0, $at), substr($name, $at + 1)];
    }

    /** The attribute of Surus with this name, or a similar one. */
    private static function meant(string $short): ?string
    {
        [$best, $least] = [null, 2];
        foreach (self::OURS as $namespace => $names) {
            foreach ($names as $name) {
                $distance = levenshtein(strtolower($short), strtolower($name));
                if ($distance < $least && ($distance === 0 || strlen($name) > 4)) {
                    [$best, $least] = ["$namespace\\$name", $distance];
                }
            }
        }

        return $best;
    }
}
