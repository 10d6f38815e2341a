<?php

declare(strict_types=1);

namespace Surus\Doctor;

use Surus\Internal\Connections;

/**
 * Everything that the requests of an application share: static properties and variables, globals, the application and
 * its services, and all that these lead to.
 *
 * @internal
 */
final class SharedState
{
    /** The maximum number of values that are visited. */
    private const VALUES = 500_000;

    /** @var array<string, Place> */
    private array $places = [];

    /** @var \SplObjectStorage<object, null> */
    private \SplObjectStorage $seen;

    private int $visited = 0;

    private function __construct()
    {
        $this->seen = new \SplObjectStorage();
    }

    public static function of(object $application): self
    {
        $state = new self();
        $state->walkGlobals();
        $state->walkClasses();
        $state->walkFunctions();
        $state->walk($application, new Root('the application'), '');

        return $state;
    }

    /** @return array<string, Place> by what names them */
    public function places(): array
    {
        return $this->places;
    }

    /** Whether there was more than could be visited. */
    public function isCutOff(): bool
    {
        return $this->visited >= self::VALUES;
    }

    private function walkGlobals(): void
    {
        $own = ['GLOBALS', '_GET', '_POST', '_COOKIE', '_FILES', '_SERVER', '_ENV', '_REQUEST', '_SESSION', 'argv', 'argc'];
        foreach (array_diff_key($GLOBALS, array_flip($own)) as $name => $value) {
            $this->walk($value, new Root("global \$$name"), '');
        }
    }

    private function walkClasses(): void
    {
        foreach (get_declared_classes() as $name) {
            $class = new \ReflectionClass($name);
            if (!$class->isUserDefined() || str_starts_with($name, 'Surus\\')) {
                continue;
            }
            foreach ($class->getProperties(\ReflectionProperty::IS_STATIC) as $property) {
                if ($property->getDeclaringClass()->name === $name && $property->isInitialized()) {
                    $this->walk($property->getValue(), Root::ofProperty($property), '');
                }
            }
            foreach ($class->getMethods() as $method) {
                if ($method->getDeclaringClass()->name === $name && $method->isUserDefined()) {
                    $this->walkVariables($method, "{$name}::{$method->name}()");
                }
            }
        }
    }

    private function walkFunctions(): void
    {
        foreach (get_defined_functions()['user'] as $name) {
            if (!str_starts_with($name, 'surus\\')) {
                $function = new \ReflectionFunction($name);
                $this->walkVariables($function, "{$function->name}()");
            }
        }
    }

    private function walkVariables(\ReflectionFunctionAbstract $function, string $name): void
    {
        foreach ($function->getStaticVariables() as $variable => $value) {
            $this->walk($value, new Root("static \$$variable of $name", (string) $function->getFileName(), (int) $function->getStartLine()), '');
        }
    }

    /** `path`: how it is reached from the root, for people. */
    private function walk(mixed $value, Root $root, string $path): void
    {
        if (++$this->visited > self::VALUES) {
            return;
        }
        if (is_array($value)) {
            $this->note($root, $path, 'array of ' . count($value));
            foreach ($value as $key => $item) {
                $this->note($root, "$path, a key", (string) $key);
                $this->walk($item, $root, is_int($key) || strlen($key) > 40 ? "{$path}[…]" : "{$path}['$key']");
            }
        } elseif (is_object($value)) {
            $this->walkObject($value, $root, $path);
        } elseif (is_resource($value)) {
            $this->note($root, $path, get_resource_type($value) . ' ' . get_resource_id($value), get_resource_type($value) === 'stream' ? 'a stream' : null);
        } else {
            $this->note($root, $path, is_string($value) ? $value : var_export($value, true));
        }
    }

    private function walkObject(object $value, Root $root, string $path): void
    {
        // Its object id tells one object from the next that takes its place.
        $this->note($root, $path, $value::class . ' ' . spl_object_id($value), Connections::ofObject($value));
        if ($this->seen->contains($value)) {
            return;
        }
        $this->seen->attach($value);
        if ($value instanceof \Closure) {
            $function = new \ReflectionFunction($value);
            foreach ($function->getStaticVariables() as $name => $variable) {
                $this->walk($variable, Root::ofVariable($name, $function), '');
            }
            if ($function->getClosureThis() !== null) {
                $this->walk($function->getClosureThis(), $root, $path);
            }

            return;
        }
        if ($value instanceof \WeakMap || $value instanceof \Generator || $value instanceof \Fiber || $value instanceof \Reflector) {
            return;
        }
        $isOwn = str_starts_with($value::class, 'Surus\\') || (new \ReflectionClass($value))->isInternal();
        foreach ((array) $value as $name => $held) {
            // Names of private and protected properties have a prefix between two zero bytes.
            $name = substr((string) $name, (int) strrpos("\0$name", "\0"));
            if ($isOwn) {
                $this->walk($held, $root, $path);
            } else {
                $this->walk($held, Root::ofName($value::class, $name), '');
            }
        }
        if ($value instanceof \SplObjectStorage) {
            foreach (clone $value as $held) {
                $this->walk($held, $root, "{$path}[…]");
            }
        }
    }

    private function note(Root $root, string $path, string $value, ?string $connection = null): void
    {
        $name = $root->name . $path;
        $this->places[$name] ??= new Place($root, $path);
        $this->places[$name]->add($value, $connection);
    }
}
