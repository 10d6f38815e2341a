<?php

declare(strict_types=1);

namespace Surus\Schema;

/**
 * Reads doc comments: types of arrays, and texts for documents.
 *
 * @internal
 */
final class PhpDoc
{
    /** @return array{description?: string} the first paragraph */
    public static function summaryOf(string|false $comment): array
    {
        $text = trim(preg_split('/\n\s*\n|(^|\n)\s*@/', self::text($comment), 2)[0] ?? '');

        return $text === '' ? [] : ['description' => preg_replace('/\s+/', ' ', $text)];
    }

    /** @return array<string, array{type: string, text?: string}> by parameter */
    private static function parameters(string|false $comment): array
    {
        preg_match_all('/^@param\s+([^@$]+?)\s*\$(\w+)[ \t]*(.*)$/m', self::text($comment), $found, PREG_SET_ORDER);
        $parameters = [];
        foreach ($found as [, $type, $name, $text]) {
            $parameters[$name] = ['type' => $type] + ($text === '' ? [] : ['text' => $text]);
        }

        return $parameters;
    }

    /** @return array{type?: string, text?: string} */
    private static function variable(string|false $comment): array
    {
        $text = self::text($comment);
        $summary = self::summaryOf($comment);
        $variable = isset($summary['description']) ? ['text' => $summary['description']] : [];
        if (preg_match('/^@var\s+(\S.*?)(?:\s+([^>,|]+))?$/m', $text, $found)) {
            $variable = ['type' => $found[1]] + $variable + (isset($found[2]) ? ['text' => $found[2]] : []);
        }

        return $variable;
    }

    /** @return array{summary?: string, description?: string} */
    public static function texts(string|false $comment): array
    {
        $text = trim(preg_split('/(^|\n)\s*@/', self::text($comment), 2)[0] ?? '');
        [$summary, $description] = preg_split('/\n\s*\n/', $text, 2) + ['', ''];
        $summary = rtrim(preg_replace('/\s+/', ' ', $summary), '.');

        return array_filter(['summary' => $summary, 'description' => trim($description)]);
    }

    /** @return array{type?: string, text?: string} from its own comment, or from the parameter promoted to it */
    public static function ofProperty(\ReflectionProperty $property): array
    {
        $constructor = $property->getDeclaringClass()->getConstructor();
        $parameters = $property->isPromoted() ? self::parameters($constructor?->getDocComment() ?? false) : [];

        return self::variable($property->getDocComment()) + ($parameters[$property->getName()] ?? []);
    }

    /** The type after `@return`, if there is one. */
    public static function returned(string|false $comment): ?string
    {
        return preg_match('/^@return\s+(.+?)\s*$/m', self::text($comment), $found) ? $found[1] : null;
    }

    /** The type of an array's elements: from its attribute, otherwise from its doc comment. */
    public static function eachOf(\ReflectionParameter $parameter): ?Each
    {
        $attribute = Attributes::first($parameter, Each::class);
        if ($attribute !== null) {
            return $attribute;
        }
        $doc = self::of($parameter)['type'] ?? null;

        return $doc === null ? null : self::each($doc, Scope::of($parameter->getDeclaringFunction()));
    }

    /** @return array{type?: string, text?: string} from the promoted property, otherwise from the parameter */
    public static function of(\ReflectionParameter $parameter): array
    {
        $name = $parameter->getName();
        $property = $parameter->isPromoted() ? $parameter->getDeclaringClass()?->getProperty($name) : null;
        $own = $property === null ? [] : self::variable($property->getDocComment());

        return $own + (self::parameters($parameter->getDeclaringFunction()->getDocComment())[$name] ?? []);
    }

    /**
     * `list<T>`, `T[]`, `array<T>`, `array<string, T>` or `array<int, T>`; null for any other type.
     */
    private static function each(string $type, ?Scope $scope): ?Each
    {
        $type = trim(preg_replace('/^\?|\|null$/', '', trim($type)));
        $patterns = [
            '/^(?:non-empty-)?(?:list|array|iterable)<(?:int,\s*)?([?\\\\\w]+)>/' => false,
            '/^([?\\\\\w]+)\[\]/' => false,
            '/^(?:non-empty-)?array<(?:string|array-key),\s*([?\\\\\w]+)>/' => true,
        ];
        foreach ($patterns as $pattern => $map) {
            if (preg_match($pattern, $type, $found)) {
                $name = self::resolve($found[1], $scope);

                return $name === null ? null : new Each($name, map: $map);
            }
        }

        return null;
    }

    /** The class name or type of `T`; `?T` keeps its mark; null if there is no such type. */
    private static function resolve(string $name, ?Scope $scope): ?string
    {
        $null = str_starts_with($name, '?') ? '?' : '';
        $name = ltrim($name, '?');
        if (\in_array($name, ['int', 'float', 'bool', 'string', 'mixed'], true)) {
            return $null . $name;
        }
        $class = $scope?->resolve($name);

        return $class === null ? null : $null . $class;
    }

    /** The text of a comment without its delimiters and asterisks. */
    private static function text(string|false $comment): string
    {
        return $comment === false ? '' : trim(preg_replace('#^[ \t]*(?:/\*\*|\*/|\*)[ \t]?|\s*\*/$#m', '', $comment));
    }
}
