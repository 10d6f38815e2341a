<?php

declare(strict_types=1);

namespace Surus\Schema;

use Psr\Container\ContainerInterface;
use Surus\Routing\Pattern as Path;

/**
 * Describes routes for the builder of the document.
 *
 * @internal
 */
final class RouteDescriber
{
    private const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE'];

    private TypeSchemas $types;

    private Security $security;

    /** @var array<string, true> */
    private array $ids = [];

    public function __construct(ContainerInterface $container)
    {
        $this->types = new TypeSchemas();
        $this->security = new Security($container);
    }

    /**
     * @param list<array{string, string, mixed, list<callable|object|string>}> $routes method, pattern, handler, middleware
     *
     * @return array{routes: list<array<string, mixed>>, schemas?: array<string, array<string, mixed>>,
     *     security?: array<string, array<string, mixed>>}
     */
    public function describe(array $routes): array
    {
        $described = [];
        foreach ($routes as [, , $handler]) {
            foreach (Handlers::reflect($handler)->getParameters() as $parameter) {
                $this->reserve($parameter);
            }
        }
        foreach ($routes as [$methods, $pattern, $handler, $middleware]) {
            $function = Handlers::reflect($handler);
            $methods = array_values(array_intersect(explode(',', $methods), self::METHODS));
            $operation = Attributes::first($function, Operation::class) ?? new Operation();
            if ($methods === [] || $operation->hidden) {
                continue;
            }
            $security = $this->security->of($middleware);
            foreach (self::paths($pattern) as [$path, $names]) {
                $described[] = $this->route($methods, $path, $names, $function, $operation) + $security;
            }
        }

        return array_filter(['routes' => $described, 'schemas' => $this->types->schemas(), 'security' => $this->security->schemes()])
            + ['routes' => []];
    }

    /**
     * @param list<string> $methods
     * @param array<string, string> $names of path parameters, with their constraints
     *
     * @return array<string, mixed>
     */
    private function route(
        array $methods,
        string $path,
        array $names,
        \ReflectionFunctionAbstract $function,
        Operation $operation,
    ): array {
        $parameters = [];
        $inputs = [];
        $of = [];
        foreach ($function->getParameters() as $parameter) {
            $of[$parameter->getName()] = $parameter;
            if (!isset($names[$parameter->getName()])) {
                $input = $this->input($parameter, $methods);
                $inputs = [...$inputs, ...($input === null ? [] : [$input])];
                $parameters = [...$parameters, ...$this->scalar($parameter)];
            }
        }
        $inPath = [];
        foreach ($names as $name => $constraint) {
            $inPath[] = $this->inPath($name, $constraint, $of[$name] ?? null);
        }
        $doc = PhpDoc::texts($function->getDocComment());

        return array_filter([
            'methods' => $methods,
            'path' => $path,
            'id' => $this->id($methods[0], $path, $operation),
            'summary' => $operation->summary ?? $doc['summary'] ?? null,
            'description' => $operation->description ?? $doc['description'] ?? null,
            'tags' => $operation->tags ?: [self::tag($path)],
            'deprecated' => $operation->deprecated || str_contains((string) $function->getDocComment(), '@deprecated'),
            'parameters' => [...$inPath, ...$parameters],
            'inputs' => $inputs,
            'responses' => (new Responses($this->types))->of($function),
        ], static fn (mixed $value) => $value !== null && $value !== []);
    }

    private static function tag(string $path): string
    {
        return explode('/', trim($path, '/'))[0] ?: 'root';
    }

    private function id(string $method, string $path, Operation $operation): string
    {
        $words = preg_split('/[^A-Za-z0-9]+/', $path, -1, PREG_SPLIT_NO_EMPTY);
        $id = $operation->id ?? strtolower($method) . implode('', array_map('ucfirst', $words));
        for ($i = 2, $base = $id; isset($this->ids[$id]); $i++) {
            $id = $base . $i;
        }
        $this->ids[$id] = true;

        return $id;
    }

    /**
     * A pattern in OpenAPI's notation, with and without its optional parts.
     *
     * @return list<array{string, array<string, string>}>
     */
    private static function paths(string $pattern): array
    {
        $paths = [];
        for ($each = new Path($pattern); $each !== null; $each = $each->shorter()) {
            array_unshift($paths, [$each->template(), array_map(static fn (array $parameter): string => $parameter['constraint'], $each->parameters)]);
        }

        return $paths;
    }

    /** @return array<string, mixed> */
    private function inPath(string $name, string $constraint, ?\ReflectionParameter $parameter): array
    {
        $schema = match ($constraint) {
            'int' => ['type' => 'integer'],
            'uuid' => ['type' => 'string', 'format' => 'uuid'],
            'slug' => ['type' => 'string', 'pattern' => '^[a-z0-9]+(-[a-z0-9]+)*$'],
            '' => $parameter?->getType() === null
                ? ['type' => 'string']
                : $this->types->ofReflection($parameter->getType(), Scope::of($parameter->getDeclaringFunction())),
            default => ['type' => 'string', 'pattern' => "^(?:$constraint)\$"],
        };
        $text = $parameter === null ? null : PhpDoc::of($parameter)['text'] ?? null;

        return ['name' => $name, 'in' => 'path', 'required' => true]
            + ($text === null ? [] : ['description' => $text]) + ['schema' => $schema ?: ['type' => 'string']];
    }

    /**
     * A single value: #[Query], #[Header] or #[Cookie] of a parameter whose type is not a class.
     *
     * @return list<array<string, mixed>>
     */
    private function scalar(\ReflectionParameter $parameter): array
    {
        foreach ($parameter->getAttributes() as $attribute) {
            preg_match('/^Surus\\\\.*\b(Query|Header|Cookie)$/', $attribute->getName(), $found);
            $kind = $found[1] ?? '';
            if ($kind === '' || Arguments::isInput($parameter)) {
                continue;
            }
            $arguments = $attribute->getArguments();
            $name = $arguments['name'] ?? $arguments[0] ?? $parameter->getName();
            if ($kind === 'Header' && $arguments === []) {
                $name = strtolower(preg_replace('/(?<=[a-z])(?=[A-Z])|_/', '-', $name));
            }
            $schema = $this->types->ofReflection($parameter->getType(), Scope::of($parameter->getDeclaringFunction()));
            $default = $parameter->isDefaultValueAvailable() ? $parameter->getDefaultValue() : null;
            $text = PhpDoc::of($parameter)['text'] ?? null;

            return [['name' => $name, 'in' => strtolower($kind)]
                + ($text === null ? [] : ['description' => $text])
                + ($parameter->isOptional() || $parameter->allowsNull() ? [] : ['required' => true])
                + ['schema' => (object) ($schema + (\is_scalar($default) ? ['default' => $default] : []))]];
        }

        return [];
    }

    /** Reserves names of input classes: as a result of handlers the same class may have another schema. */
    private function reserve(\ReflectionParameter $parameter): void
    {
        if (Arguments::isInput($parameter) && $parameter->getType() instanceof \ReflectionNamedType) {
            foreach (Boot::input($parameter->getType()->getName())[1] as [$class]) {
                $this->types->reserve($class);
            }
        }
    }

    /**
     * @param list<string> $methods
     *
     * @return array<string, mixed>|null
     */
    private function input(\ReflectionParameter $parameter, array $methods): ?array
    {
        if (!Arguments::isInput($parameter)) {
            return null;
        }
        $from = Arguments::sourceOf($parameter, $methods);
        $class = $parameter->getType() instanceof \ReflectionNamedType ? $parameter->getType()->getName() : '';

        return [
            'from' => $from === Arguments::QUERY ? 'query' : 'body',
            'json' => ($from & Arguments::JSON) !== 0,
            'form' => ($from & Arguments::FORM) !== 0,
            'schema' => json_decode(Boot::input($class)[0], flags: JSON_THROW_ON_ERROR),
        ];
    }
}
