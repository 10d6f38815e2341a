<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\BootError;
use Surus\Container;
use Surus\Http\Request;
use Surus\WebSocket;

/**
 * A class that handles WebSockets: `onOpen`, `onMessage` and `onClose`, each called in turn; each WebSocket has its own object, and no
 * fiber between two calls.
 *
 * @internal
 */
final class SocketClass
{
    private readonly ?\Closure $make;

    /** @param class-string|object $class */
    private function __construct(private readonly Container $container, private readonly string|object $class)
    {
        $made = is_object($class) || $container->isDeclared($class);
        $this->make = $made ? null : Recipe::of($container, $class, null)->make;
    }

    /** Null: it is another kind of handler. */
    public static function of(Container $container, mixed $handler, string $origin): ?self
    {
        $isClass = is_object($handler) && !$handler instanceof \Closure || is_string($handler) && class_exists($handler);
        if (!$isClass || !method_exists($handler, 'onMessage')) {
            return null;
        }
        foreach (['onMessage' => 2, 'onClose' => 1] as $name => $count) {
            if (method_exists($handler, $name)) {
                $method = new \ReflectionMethod($handler, $name);
                if (!$method->isPublic() || $method->getNumberOfRequiredParameters() > $count) {
                    $parameters = '$socket' . ($count === 2 ? ', string $message' : '');
                    throw new BootError(Origin::of($method) . ": it is public function $name(WebSocket $parameters)");
                }
            }
        }
        try {
            return new self($container, $handler);
        } catch (BootError $error) {
            throw new BootError("$origin: the handler of a WebSocket cannot be made: {$error->getMessage()}");
        }
    }

    /** The method whose arguments are those of a handler. */
    public function opening(): ?\ReflectionMethod
    {
        return method_exists($this->class, 'onOpen') ? new \ReflectionMethod($this->class, 'onOpen') : null;
    }

    /** @param list<mixed> $arguments of onOpen() */
    public function run(Request $request, WebSocket $socket, array $arguments): void
    {
        $conversation = new Conversation($socket, $this->object($request));
        $socket->converse($conversation);
        $conversation->open($arguments);
    }

    private function object(Request $request): object
    {
        if (is_object($this->class)) {
            return clone $this->class;
        }
        if ($this->make !== null) {
            return ($this->make)($this->container, $request);
        }
        $made = $this->container->get($this->class, $request);

        // One that requests share has what one client's WebSocket notes about it, for all others.
        return $this->container->isScoped($this->class) ? $made : clone $made;
    }
}
