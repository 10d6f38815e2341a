<?php

declare(strict_types=1);

namespace Surus\Internal;

use Psr\Http\Message\ServerRequestInterface;
use Surus\Attribute;
use Surus\BootError;
use Surus\Container;
use Surus\Http\Request;
use Surus\Psr\Bridge;
use Surus\Routing\Pattern;
use Surus\Schema\Arguments;
use Surus\Schema\Attributes;
use Surus\Schema\Handlers;
use Surus\Schema\Rules;
use Surus\WebSocket;

/**
 * Makes the plan of a handler's arguments from its signature, once at boot.
 *
 * @internal
 */
final class Planner
{
    public function __construct(private readonly Container $container)
    {
    }

    /** The handler as a callable, its arguments, and the pattern with constraints from their types. */
    public function plan(Declared $route): Plan
    {
        // Otherwise the error would be reported for a parameter of the handler.
        $wrong = (string) $route->pattern === '' ? null : pattern_error((string) $route->pattern);
        if ($wrong !== null) {
            throw new BootError("$route->origin: $wrong");
        }
        if ($route->handler instanceof SocketRoute) {
            return $this->ofSocket($route->handler, $route);
        }
        [$callable, $function, $leading, $target] = $this->resolve($route, $route->handler);
        $pattern = $route->pattern;
        $arguments = [...$leading, ...$this->arguments($function, $pattern, $route)];

        return new Plan($callable, $arguments, $pattern, $target);
    }

    private function ofSocket(SocketRoute $socket, Declared $route): Plan
    {
        if (!has_websockets()) {
            throw new BootError("$route->origin: WebSockets are for coroutine mode, without `processes`");
        }
        $class = SocketClass::of($this->container, $socket->handler, $route->origin);
        if ($class !== null) {
            [$run, $function, $leading, $target] = [$class->run(...), $class->opening(), [], null];
        } else {
            [$callable, $function, $leading, $target] = $this->resolve($route, $socket->handler);
            $run = static fn (Request $request, WebSocket $socket, array $arguments): mixed => $callable(...$arguments);
        }
        $pattern = $route->pattern;
        $own = $function === null ? [] : $this->arguments($function, $pattern, $route);
        $positions = [];
        foreach ($function?->getParameters() ?? [] as $position => $parameter) {
            if (self::isSocket($parameter)) {
                $positions[] = $position + count($leading);
            }
        }

        return new Plan($socket->around($run, $positions), [new Argument(Argument::REQUEST), ...$leading, ...$own], $pattern, $target);
    }

    /** @return list<Argument> */
    private function arguments(\ReflectionFunctionAbstract $function, Pattern &$pattern, Declared $route): array
    {
        Imports::check($function);
        $arguments = [];
        foreach ($function->getParameters() as $parameter) {
            if ($parameter->isVariadic()) {
                break;
            }
            $arguments[] = self::isSocket($parameter) && $route->handler instanceof SocketRoute
                ? new Argument(Argument::CONSTANT) // It comes with the response.
                : $this->argument($parameter, $pattern, $route, $function);
        }

        return $arguments;
    }

    private static function isSocket(\ReflectionParameter $parameter): bool
    {
        $type = $parameter->getType();

        return $type instanceof \ReflectionNamedType && $type->getName() === WebSocket::class;
    }

    /** @return array{callable, \ReflectionFunctionAbstract, list<Argument>, array{class-string, string}|null} */
    private function resolve(Declared $route, mixed $declared): array
    {
        $handler = Handlers::target($declared);
        if ($handler === null) {
            throw new BootError("$route->origin: the handler for \"{$route->label()}\" cannot be called: " . self::described($declared));
        }
        if (!is_array($handler)) {
            return [$handler, new \ReflectionFunction($handler), [], null];
        }
        $method = new \ReflectionMethod($handler[0], $handler[1]);
        if (!$method->isPublic()) {
            throw new BootError(Origin::of($method) . ": the handler for \"{$route->label()}\" is not public");
        }
        if (is_object($handler[0]) || $method->isStatic()) {
            /** @var callable $handler */
            return [$handler, $method, [], null];
        }
        [$class, $name] = $handler;
        if (!$this->container->isScoped($class)) {
            return [[$this->container->get($class), $name], $method, [], null];
        }
        $container = $this->container;
        $call = static fn (Request $request, mixed ...$arguments): mixed => $container->get($class, $request)->$name(...$arguments);

        return [$call, $method, [new Argument(Argument::REQUEST)], [$class, $name]];
    }

    private static function described(mixed $handler): string
    {
        if (is_array($handler) && is_string($handler[1] ?? null) && (is_object($handler[0] ?? null) || is_string($handler[0] ?? null))) {
            return (is_object($handler[0]) ? $handler[0]::class : $handler[0]) . '::' . $handler[1];
        }

        return is_string($handler) ? "\"$handler\"" : get_debug_type($handler);
    }

    private function argument(\ReflectionParameter $parameter, Pattern &$pattern, Declared $route, \ReflectionFunctionAbstract $function): Argument
    {
        Imports::check($parameter);
        $name = $parameter->getName();
        $type = $parameter->getType();
        if ($type instanceof \ReflectionNamedType && class_exists($type->getName())) {
            Imports::checkClass(new \ReflectionClass($type->getName()));
        }
        $fail = static fn (string $why): BootError => new BootError(
            Origin::of($function) . ": parameter \$$name of the handler for \"{$route->label()}\" $why",
        );
        if (self::isSocket($parameter)) {
            throw $fail('is a WebSocket: declare the route with $app->websocket()');
        }
        if ($type instanceof \ReflectionNamedType && Arguments::isInput($parameter)) {
            $source = Arguments::sourceOf($parameter, $route->methods);
            if (($source & Arguments::QUERY) === 0 && ($parameter->isDefaultValueAvailable() || $parameter->allowsNull())) {
                throw $fail('is a body, which no request can leave out: it has no default, and is not null');
            }
            if (Arguments::hasFiles($parameter) && ($source & Arguments::FORM) === 0) {
                throw $fail('has uploaded files, which only a form brings: mark it #[Form]');
            }

            return new Argument(Argument::INPUT, $type->getName(), $source, make: $this->services($type->getName(), $fail));
        }
        if (($why = Arguments::misuse($parameter)) !== null) {
            throw $fail($why);
        }
        $sources = [Attribute\Query::class => Argument::QUERY, Attribute\Header::class => Argument::HEADER, Attribute\Cookie::class => Argument::COOKIE];
        foreach ($sources as $attribute => $source) {
            $found = Attributes::first($parameter, $attribute);
            if ($found !== null) {
                $key = $found->name;
                if ($key === '') {
                    $key = $source === Argument::HEADER ? strtolower(str_replace('_', '-', (string) preg_replace('/(?<=[a-z])(?=[A-Z])/', '-', $name))) : $name;
                }

                return $this->value($parameter, $source, $source === Argument::HEADER ? strtolower($key) : $key, $fail);
            }
        }
        $inPath = $pattern->parameters[$name] ?? null;
        if ($inPath !== null) {
            $argument = $this->value($parameter, Argument::PATH, $inPath['position'], $fail);
            if ($inPath['optional'] && $argument->required) {
                throw $fail('is optional in the path: give it a default, or make it nullable');
            }
            if ($argument->type === Argument::INT && $inPath['constraint'] === '') {
                $pattern = $pattern->constrained($name, 'int') ?? $pattern;
            }

            return $argument;
        }
        $position = $this->hostPosition($route, $name);
        if ($position !== null) {
            return $this->value($parameter, Argument::PATH, count($pattern->parameters) + $position, $fail);
        }
        if ($type === null && $function->getNumberOfParameters() === 1 && $pattern->parameters === []) {
            return new Argument(Argument::REQUEST);
        }

        try {
            $service = $this->ofClass($parameter, $type);
        } catch (BootError $error) {
            throw $fail("is a service that cannot be made: {$error->getMessage()}");
        }

        return $service ?? throw $fail(
            'is no parameter of the path, has no attribute such as #[Query], and its type' . ($type === null ? '' : " $type")
            . ' is neither ' . Request::class . ' nor a service' . Recipe::missing($type),
        );
    }

    /**
     * The function that finds the services which rules of an input class need.
     *
     * @param class-string $input
     *
     * @return ?\Closure(Request): \Closure(string): mixed
     */
    private function services(string $input, callable $fail): ?\Closure
    {
        $needed = Rules::of($input)?->services() ?? [];
        foreach ($needed as $rule => $services) {
            foreach ($services as $id) {
                try {
                    $this->container->has($id) || throw $fail("has the rule $rule, which asks for $id: there is no such service");
                    $this->container->isScoped($id);
                } catch (BootError $error) {
                    throw str_contains($error->getMessage(), $rule) ? $error : $fail("has the rule $rule, whose service $id cannot be made: {$error->getMessage()}");
                }
            }
        }
        $container = $this->container;

        return array_filter($needed) === [] ? null
            : static fn (Request $request): \Closure => static fn (string $id): mixed => $container->get($id, $request);
    }

    private function ofClass(\ReflectionParameter $parameter, ?\ReflectionType $type): ?Argument
    {
        $class = $type instanceof \ReflectionNamedType && !$type->isBuiltin() ? $type->getName() : null;
        if ($class !== null && is_a($class, Request::class, true)) {
            return new Argument(Argument::REQUEST);
        }
        if ($class !== null && is_a($class, ServerRequestInterface::class, true)) {
            $bridge = new Bridge($this->container);

            return new Argument(Argument::CALL, make: $bridge->request(...));
        }
        if ($class !== null && $this->container->has($class)) {
            $container = $this->container;
            if ($container->isScoped($class)) {
                return new Argument(Argument::CALL, make: static fn (Request $request): mixed => $container->get($class, $request));
            }

            return new Argument(Argument::CALL, make: static fn (): mixed => $container->get($class));
        }
        if ($parameter->isDefaultValueAvailable()) {
            return new Argument(Argument::CONSTANT, default: $parameter->getDefaultValue());
        }

        return $type?->allowsNull() === true ? new Argument(Argument::CONSTANT) : null;
    }

    /** An argument whose value is text in the request. */
    private function value(\ReflectionParameter $parameter, int $source, int|string $key, callable $fail): Argument
    {
        $type = $parameter->getType();
        $required = !$parameter->isDefaultValueAvailable() && !($type !== null && $type->allowsNull());
        $default = $parameter->isDefaultValueAvailable() ? $parameter->getDefaultValue() : null;
        $names = array_map(
            static fn (\ReflectionType $one): string => $one instanceof \ReflectionNamedType ? $one->getName() : '',
            $type instanceof \ReflectionUnionType ? $type->getTypes() : ($type === null ? [] : [$type]),
        );
        $kinds = ['string' => Argument::STRING, 'int' => Argument::INT, 'float' => Argument::FLOAT, 'bool' => Argument::BOOL];
        if ($source === Argument::QUERY) {
            $kinds['array'] = Argument::LIST;
        }
        if ($names === [] || in_array('mixed', $names, true)) {
            return new Argument($source, $key, Argument::STRING, $required, $default);
        }
        foreach ($kinds as $name => $kind) {
            if (in_array($name, $names, true)) {
                return new Argument($source, $key, $kind, $required, $default);
            }
        }
        $enum = $names[0];
        if (enum_exists($enum)) {
            if (!is_a($enum, \BackedEnum::class, true)) {
                throw $fail("is an enum without values: $enum");
            }
            $kind = (string) (new \ReflectionEnum($enum))->getBackingType() === 'int' ? Argument::INT : Argument::STRING;

            return new Argument($source, $key, $kind, $required, $default, $enum::tryFrom(...));
        }
        throw $fail('has a type that no text in a request becomes: ' . $type);
    }

    private function hostPosition(Declared $route, string $name): ?int
    {
        preg_match_all('/\{(\w+)/', $route->host, $found);
        $position = array_search($name, $found[1], true);

        return $position === false ? null : (int) $position;
    }
}
