<?php

declare(strict_types=1);

namespace Surus\Events;

use Psr\EventDispatcher\EventDispatcherInterface;
use Psr\EventDispatcher\ListenerProviderInterface;
use Psr\EventDispatcher\StoppableEventInterface;

/** Calls listeners with events, one after the other (PSR-14). An exception of a listener reaches the caller. */
final class Dispatcher implements EventDispatcherInterface
{
    /** @param ListenerProviderInterface $listeners returns the listeners of an event, in order */
    public function __construct(private readonly ListenerProviderInterface $listeners)
    {
    }

    /**
     * @template T of object
     *
     * @param T $event
     *
     * @return T
     */
    public function dispatch(object $event): object
    {
        $stoppable = $event instanceof StoppableEventInterface;
        foreach ($this->listeners->getListenersForEvent($event) as $listener) {
            if ($stoppable && $event->isPropagationStopped()) {
                break;
            }
            $listener($event);
        }

        return $event;
    }
}
