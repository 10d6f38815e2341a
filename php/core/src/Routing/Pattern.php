<?php

declare(strict_types=1);

namespace Surus\Routing;

/**
 * The pattern of a path, as far as PHP needs to parse it; the server checks and matches it.
 *
 * @internal
 */
final class Pattern implements \Stringable
{
    /* A name, marks, and a constraint in which braces are balanced. */
    private const PARAMETER = '~\{(\w+)([?*]*)(?::((?:[^{}]|\{[^{}]*\})*))?\}~';

    /** @var array<string, array{position: int, optional: bool, rest: bool, constraint: string}> */
    public readonly array $parameters;

    /** @param string $text such as `/users/{id:int}` */
    public function __construct(private readonly string $text)
    {
        $parameters = [];
        preg_match_all(self::PARAMETER, $text, $found, PREG_SET_ORDER);
        foreach ($found as $position => $match) {
            $parameters[$match[1]] = [
                'position' => $position,
                'optional' => str_contains($match[2], '?'),
                'rest' => str_contains($match[2], '*'),
                'constraint' => $match[3] ?? '',
            ];
        }
        $this->parameters = $parameters;
    }

    public function __toString(): string
    {
        return $this->text;
    }

    /** The pattern as a URI template: `/users/{id}`. */
    public function template(): string
    {
        return (string) preg_replace(self::PARAMETER, '{$1}', $this->text);
    }

    /** The pattern without its last part; null if that part is not optional. */
    public function shorter(): ?self
    {
        $last = array_key_last($this->parameters);
        if ($last === null || !$this->parameters[$last]['optional']) {
            return null;
        }
        $shorter = (string) preg_replace('~/' . substr(self::PARAMETER, 1, -1) . '$~D', '', $this->text, 1, $count);

        return $count === 0 ? null : new self($shorter === '' ? '/' : $shorter);
    }

    /** Equal for all patterns that differ only in the names of their parameters: they match the same paths. */
    public function shape(): string
    {
        return (string) preg_replace(self::PARAMETER, '{$2:$3}', $this->text);
    }

    /** The pattern with another constraint; null if it has no such parameter. */
    public function constrained(string $name, string $constraint): ?self
    {
        if (!isset($this->parameters[$name])) {
            return null;
        }

        return new self((string) preg_replace_callback(
            self::PARAMETER,
            static fn (array $match): string => $match[1] === $name
                ? '{' . $match[1] . $match[2] . ':' . $constraint . '}'
                : $match[0],
            $this->text,
        ));
    }

    /**
     * The path with these values; used values are removed from the array.
     *
     * @param array<string, string> $values
     */
    public function fill(array &$values): string
    {
        $path = (string) preg_replace_callback('~/?' . substr(self::PARAMETER, 1), function (array $match) use (&$values): string {
            $slash = $match[0][0] === '/' ? '/' : '';
            $name = $match[1];
            $parameter = $this->parameters[$name];
            $value = $values[$name] ?? '';
            unset($values[$name]);
            if ($value === '') {
                if ($parameter['optional']) {
                    return '';
                }
                throw new \InvalidArgumentException("The path $this->text needs a value for \"$name\"");
            }
            if (!self::fits($value, $parameter['constraint'])) {
                throw new \InvalidArgumentException("\"$value\" is no value for \"$name\" in $this->text");
            }

            return $slash . ($parameter['rest']
                ? implode('/', array_map(rawurlencode(...), explode('/', $value)))
                : rawurlencode($value));
        }, $this->text);

        return $path === '' ? '/' : $path;
    }

    private static function fits(string $value, string $constraint): bool
    {
        $expression = match ($constraint) {
            '' => '.+',
            'int' => '-?[0-9]{1,19}',
            'slug' => '[a-z0-9]+(?:-[a-z0-9]+)*',
            'uuid' => '[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}',
            default => $constraint,
        };

        return preg_match("\x01^(?:$expression)\$\x01Dsu", $value) === 1;
    }
}
