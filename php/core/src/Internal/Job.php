<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * What Surus\offload() can run in another process: a function or a public static method, by its name.
 *
 * @internal
 */
final class Job
{
    /**
     * @param string|array{class-string, string} $callable
     * @param list<string> $parameters names
     */
    private function __construct(
        public readonly string $name,
        public readonly string|array $callable,
        private readonly string|false $file,
        private readonly array $parameters,
    ) {
    }

    public static function of(callable $job): self
    {
        if ($job instanceof \Closure) {
            $job = self::named($job);
        } elseif (\is_string($job) && \str_contains($job, '::')) {
            $job = \explode('::', $job, 2);
        }
        if (\is_string($job)) {
            $function = new \ReflectionFunction($job);
            return new self($function->getName(), $function->getName(), $function->getFileName(), self::parameters($function));
        }
        if (!\is_array($job) || !\is_string($job[0])) {
            throw self::refusal('a method of an object belongs to this process');
        }
        [$class, $method] = $job;
        if (!\method_exists($class, $method)) {
            throw self::refusal("$class::$method() has no name that another process could call");
        }
        $method = new \ReflectionMethod($class, $method);
        $name = (new \ReflectionClass($class))->getName() . '::' . $method->getName();
        if (!$method->isStatic() || !$method->isPublic()) {
            throw self::refusal("$name() is not both public and static");
        }
        $class = new \ReflectionClass($class);
        return new self($name, [$class->getName(), $method->getName()], $class->getFileName(), self::parameters($method));
    }

    /** @return callable-string|array{class-string, string} */
    private static function named(\Closure $closure): string|array
    {
        $function = new \ReflectionFunction($closure);
        if ($function->isAnonymous()) {
            throw self::refusal('a closure is code of this process');
        }
        if ($function->getClosureThis() !== null) {
            throw self::refusal('a method of an object belongs to this process');
        }
        $class = $function->getClosureScopeClass();
        return $class === null ? $function->getName() : [$class->getName(), $function->getName()];
    }

    private static function refusal(string $why): \ValueError
    {
        return new \ValueError("Surus\\offload(): Argument #1 (\$job) must be a function or [Class::class, 'method'] of a public static method: $why");
    }

    /** @return list<string> */
    private static function parameters(\ReflectionFunctionAbstract $function): array
    {
        return \array_map(static fn (\ReflectionParameter $parameter): string => $parameter->getName(), $function->getParameters());
    }

    /** The file that declares it; null: PHP itself, or Surus. */
    public function file(): ?string
    {
        if ($this->file === false || \str_starts_with($this->file, 'surus:')) {
            return null;
        }
        if (!\is_file($this->file)) {
            throw self::refusal("$this->name() is declared in $this->file, which is no file");
        }
        if ($this->file === (\get_included_files()[0] ?? null)) {
            throw self::refusal("$this->name() is declared in $this->file, which would serve requests if it was loaded there; "
                . 'give it a file of its own');
        }
        return $this->file;
    }

    /**
     * @param array<array-key, mixed> $arguments
     * @return string serialized
     */
    public function serialized(array $arguments): string
    {
        foreach ($arguments as $key => $argument) {
            if ($this->isResource($argument)) {
                throw new \TypeError($this->about($key) . ' cannot go to another process: it is or has a resource');
            }
        }
        try {
            return \serialize($arguments);
        } catch (\Throwable $all) {
        }
        foreach ($arguments as $key => $argument) {
            try {
                \serialize($argument);
            } catch (\Throwable $error) {
                throw new \TypeError($this->about($key) . ' cannot go to another process: ' . $error->getMessage(), 0, $error);
            }
        }
        throw $all;
    }

    private function isResource(mixed $value): bool
    {
        $found = \is_resource($value);
        if (\is_array($value)) {
            \array_walk_recursive($value, static function (mixed $item) use (&$found): void {
                $found = $found || \is_resource($item);
            });
        }
        return $found;
    }

    private function about(int|string $key): string
    {
        $name = \is_int($key) ? $this->parameters[$key] ?? 'arguments' : $key;
        $number = \is_int($key) ? ' #' . ($key + 2) : '';
        return "Surus\\offload(): Argument$number (\$$name) of $this->name()";
    }
}
