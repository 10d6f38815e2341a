<?php

declare(strict_types=1);

namespace Surus\Events;

use Psr\EventDispatcher\ListenerProviderInterface;
use Surus\BootError;
use Surus\Container;

/**
 * The listeners of events (PSR-14): those for the class of an event, its parents and its interfaces.
 *
 * @phpstan-type Listener callable|class-string|array{class-string|object, string}
 */
final class Listeners implements ListenerProviderInterface
{
    /** @var array<class-string, list<array{int, int, \Closure(): callable}>> by event class: order, turn, listener */
    private array $by = [];

    /** @var list<ListenerProviderInterface> */
    private array $others = [];

    private int $turn = 0;

    /** @var array<class-string, list<callable>> cached results, by class of the event */
    private array $found = [];

    /** @param ?Container $container makes listeners that are named by their class */
    public function __construct(private readonly ?Container $container = null)
    {
    }

    /**
     * @param class-string $event
     * @param Listener $listener a class has the method __invoke
     * @param int $priority the highest is first; of equals, the one that was added first
     */
    public function on(string $event, mixed $listener, int $priority = 0): static
    {
        if (!class_exists($event) && !interface_exists($event)) {
            throw new BootError("there is no class $event whose events could be listened to");
        }
        $this->by[$event][] = [-$priority, $this->turn++, $this->resolver($listener)];
        $this->found = [];

        return $this;
    }

    /** Adds the listeners of another provider, after those from here. */
    public function add(ListenerProviderInterface $provider): static
    {
        $this->others[] = $provider;

        return $this;
    }

    /** @return iterable<callable> */
    public function getListenersForEvent(object $event): iterable
    {
        yield from $this->found[$event::class] ??= $this->find($event);
        foreach ($this->others as $provider) {
            yield from $provider->getListenersForEvent($event);
        }
    }

    /** @return list<callable> */
    private function find(object $event): array
    {
        $rows = [];
        foreach ([$event::class, ...array_values(class_parents($event)), ...array_values(class_implements($event))] as $class) {
            array_push($rows, ...$this->by[$class] ?? []);
        }
        usort($rows, static fn (array $a, array $b): int => [$a[0], $a[1]] <=> [$b[0], $b[1]]);

        return array_map(static fn (array $row): callable => $row[2](), $rows);
    }

    /** @return \Closure(): callable */
    private function resolver(mixed $listener): \Closure
    {
        if (is_string($listener) && class_exists($listener)) {
            $listener = [$listener, '__invoke'];
        }
        $named = is_array($listener) && is_string($listener[0] ?? null) && is_string($listener[1] ?? null)
            && method_exists($listener[0], $listener[1]) && !(new \ReflectionMethod($listener[0], $listener[1]))->isStatic();
        if (!$named) {
            return is_callable($listener)
                ? static fn (): callable => $listener
                : throw new BootError('this listener cannot be called');
        }
        [$class, $method] = $listener;
        if ($this->container?->isScoped($class)) {
            throw new BootError("the listener $class belongs to a request, but events are everybody's");
        }
        $container = $this->container;

        return static fn (): callable => [$container === null ? new $class() : $container->get($class), $method];
    }
}
