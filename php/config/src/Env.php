<?php

declare(strict_types=1);

namespace Surus\Config;

/**
 * Settings from the environment, and from a file of lines `NAME=value` for those that are not in the environment.
 *
 * Each is read with a type; a missing or invalid value is an error at boot. A value may be in quotes, "with \n for a
 * line break" or 'literally'; a # after a space begins a comment. There is no interpolation.
 */
final class Env
{
    /** @param array<string, string> $values from the file */
    private function __construct(private readonly array $values, private readonly string $from)
    {
    }

    /** @param string $file a missing file is like an empty one */
    public static function load(string $file): self
    {
        if (is_file($file) && function_exists('Surus\watch')) {
            \Surus\watch($file);
        }

        return new self(is_file($file) ? self::parse((string) file_get_contents($file), $file) : [], $file);
    }

    /** @throws \Surus\BootError if it is missing and there is no default */
    public function string(string $name, ?string $default = null): string
    {
        return $this->find($name) ?? $default ?? throw $this->wrong($name, 'is missing');
    }

    /** @throws \Surus\BootError if it is missing and there is no default, or if it is not an integer */
    public function int(string $name, ?int $default = null): int
    {
        $text = $this->find($name);
        if ($text === null) {
            return $default ?? throw $this->wrong($name, 'is missing');
        }
        $value = filter_var($text, FILTER_VALIDATE_INT);

        return $value === false ? throw $this->wrong($name, 'is no integer') : $value;
    }

    /** @throws \Surus\BootError if it is missing and there is no default, or if it is not a number */
    public function float(string $name, ?float $default = null): float
    {
        $text = $this->find($name);
        if ($text === null) {
            return $default ?? throw $this->wrong($name, 'is missing');
        }
        $value = filter_var($text, FILTER_VALIDATE_FLOAT);

        return $value === false ? throw $this->wrong($name, 'is no number') : $value;
    }

    /** true, 1, yes, on; false, 0, no, off. */
    public function bool(string $name, ?bool $default = null): bool
    {
        $text = $this->find($name);
        if ($text === null) {
            return $default ?? throw $this->wrong($name, 'is missing');
        }

        return filter_var($text, FILTER_VALIDATE_BOOL, FILTER_NULL_ON_FAILURE) ?? throw $this->wrong($name, 'is neither true nor false');
    }

    /**
     * Items separated by commas.
     *
     * @param list<string>|null $default
     *
     * @return list<string>
     */
    public function list(string $name, ?array $default = null): array
    {
        $text = $this->find($name);
        if ($text === null) {
            return $default ?? throw $this->wrong($name, 'is missing');
        }

        return array_values(array_filter(array_map(trim(...), explode(',', $text)), static fn (string $item): bool => $item !== ''));
    }

    /**
     * @template T of \BackedEnum
     *
     * @param class-string<T> $enum
     *
     * @return T
     */
    public function enum(string $name, string $enum, ?\BackedEnum $default = null): \BackedEnum
    {
        $text = $this->find($name);
        if ($text === null) {
            return $default ?? throw $this->wrong($name, 'is missing');
        }

        // With strict types, tryFrom() of an int enum would not accept a text.
        $number = (string) (new \ReflectionEnum($enum))->getBackingType() === 'int';
        $value = $number ? filter_var($text, FILTER_VALIDATE_INT) : $text;

        return ($value === false ? null : $enum::tryFrom($value)) ?? throw $this->wrong($name, 'is none of ' . implode(', ', array_column($enum::cases(), 'value')));
    }

    private function find(string $name): ?string
    {
        $set = getenv($name);

        return $set === false ? $this->values[$name] ?? null : $set;
    }

    private function wrong(string $name, string $what): \Surus\BootError
    {
        // The message does not contain the value: it may be a secret.
        return new \Surus\BootError("The setting $name $what (environment, or $this->from)");
    }

    /** @return array<string, string> */
    private static function parse(string $text, string $file): array
    {
        $values = [];
        foreach (preg_split('/\r\n|\n|\r/', $text) ?: [] as $i => $line) {
            $line = trim($line);
            if ($line === '' || $line[0] === '#') {
                continue;
            }
            if (preg_match('/^(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(?:"((?:[^"\\\\]|\\\\.)*)"|\'([^\']*)\'|((?:[^\s#"\'](?:[^\s]|\s+(?!#|\s|$))*)?))(?:\s+#.*|\s*)$/', $line, $match) !== 1) {
                throw new \Surus\BootError("$file:" . ($i + 1) . ': this is no NAME=value');
            }
            $values[$match[1]] = match (true) {
                ($match[2] ?? '') !== '' => stripcslashes($match[2]),
                ($match[3] ?? '') !== '' => $match[3],
                default => trim($match[4] ?? ''),
            };
        }

        return $values;
    }
}
