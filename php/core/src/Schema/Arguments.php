<?php

declare(strict_types=1);

namespace Surus\Schema;

/**
 * Which parameters of handlers are input, and where it comes from.
 *
 * @internal
 */
final class Arguments
{
    /* The same numbers as in bridge.h. */
    public const JSON = 1;
    public const FORM = 2;
    public const QUERY = 4;

    /** Whether the parameter or its class is marked as input. */
    public static function isInput(\ReflectionParameter $parameter): bool
    {
        $type = $parameter->getType();
        if (!$type instanceof \ReflectionNamedType || $type->isBuiltin() || !class_exists($type->getName())) {
            return false;
        }
        $class = new \ReflectionClass($type->getName());
        if ($class->isInternal() || $class->getConstructor() === null) {
            return false;
        }
        if (self::declared($parameter) !== 0) {
            return true;
        }
        $attributes = $class->getAttributes();
        foreach ($class->getConstructor()->getParameters() as $each) {
            array_push($attributes, ...$each->getAttributes());
        }

        return array_filter($attributes, self::isRule(...)) !== [];
    }

    /** The error of a parameter that looks like input but is not; null if it does not look like input. */
    public static function misuse(\ReflectionParameter $parameter): ?string
    {
        $type = $parameter->getType();
        $class = $type instanceof \ReflectionNamedType && class_exists($type->getName()) ? new \ReflectionClass($type->getName()) : null;
        if ((self::declared($parameter) & (self::JSON | self::FORM)) !== 0) {
            return 'is marked as a body: its type has to be a class whose constructor declares what is in it'
                . ' (Request::json(), form() and body() take anything)';
        }
        foreach ($class?->isInternal() === false ? $class->getProperties() : [] as $property) {
            if (!$property->isPromoted() && array_filter($property->getAttributes(), self::isRule(...)) !== []) {
                return "is a {$class->getName()}, which has rules on its property \${$property->getName()}: input is"
                    . ' declared by the parameters of a constructor, so promote it there';
            }
        }

        return null;
    }

    /** Whether its class, or a class used in it, has uploaded files. */
    public static function hasFiles(\ReflectionParameter $parameter): bool
    {
        $type = $parameter->getType();

        return $type instanceof \ReflectionNamedType && class_exists($type->getName())
            && \in_array('file', array_column(Boot::input($type->getName())[1], 1), true);
    }

    /** @param list<string> $methods of the route */
    public static function sourceOf(\ReflectionParameter $parameter, array $methods): int
    {
        $bodiless = array_diff($methods, ['GET', 'HEAD', 'DELETE']) === [];

        return self::declared($parameter) ?: ($bodiless ? self::QUERY : self::JSON);
    }

    /**
     * Whether it is of this namespace, or a rule of the application.
     *
     * @param \ReflectionAttribute<object> $attribute
     */
    private static function isRule(\ReflectionAttribute $attribute): bool
    {
        $name = $attribute->getName();

        return str_starts_with($name, __NAMESPACE__ . '\\') || is_a($name, AnyRule::class, true) || is_a($name, Constraint::class, true);
    }

    /** The sources that the parameter's attributes declare. */
    private static function declared(\ReflectionParameter $parameter): int
    {
        $source = 0;
        foreach ($parameter->getAttributes() as $attribute) {
            if (preg_match('/^Surus\\\\(?:.*\\\\)?(Body|Form|Query)$/', $attribute->getName(), $found)) {
                $source |= ['Body' => self::JSON, 'Form' => self::FORM, 'Query' => self::QUERY][$found[1]];
            }
        }

        return $source;
    }
}
