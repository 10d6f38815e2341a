<?php

declare(strict_types=1);

namespace Surus\Doctor;

/**
 * What holds shared state, and where it is declared.
 *
 * @internal
 */
final class Root
{
    public function __construct(public readonly string $name, public readonly string $file = '', public readonly int $line = 0)
    {
    }

    public static function ofProperty(\ReflectionProperty $property): self
    {
        $class = $property->getDeclaringClass();
        $file = (string) $class->getFileName();

        return new self("{$class->name}::\${$property->name}", $file, self::line($file, (int) $class->getStartLine(), $property->name));
    }

    /** A property of an object; its class may not declare it. */
    public static function ofName(string $class, string $name): self
    {
        for ($owner = new \ReflectionClass($class); $owner !== false; $owner = $owner->getParentClass()) {
            if ($owner->hasProperty($name)) {
                return self::ofProperty($owner->getProperty($name));
            }
        }

        return new self("$class::\$$name");
    }

    /** A variable that a closure uses or keeps. */
    public static function ofVariable(string $name, \ReflectionFunction $closure): self
    {
        return new self("\$$name of a closure", (string) $closure->getFileName(), (int) $closure->getStartLine());
    }

    /** `app.php:7`, relative to the current directory; "" if nobody knows. */
    public function place(): string
    {
        return $this->file === '' ? '' : self::relative($this->file) . ":$this->line";
    }

    public static function relative(string $path): string
    {
        $folder = getcwd() . '/';

        return str_starts_with($path, $folder) ? substr($path, strlen($folder)) : $path;
    }

    /** The line of a property: PHP tells only that of its class. */
    private static function line(string $file, int $from, string $name): int
    {
        $lines = is_file($file) ? file($file) : [];
        foreach (array_slice($lines === false ? [] : $lines, max($from - 1, 0), null, true) as $index => $line) {
            if (preg_match('/\b(?:static|public|protected|private|readonly|var)\b[^=;({]*\$' . preg_quote($name, '/') . '\b/', $line) === 1) {
                return $index + 1;
            }
        }

        return $from;
    }
}
