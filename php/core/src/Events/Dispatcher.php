<?php

declare(strict_types=1);

namespace Surus\Events;

use Psr\EventDispatcher\EventDispatcherInterface;
use Psr\EventDispatcher\ListenerProviderInterface;
use Psr\EventDispatcher\StoppableEventInterface;

/** Tells listeners of events, one after the other (PSR-14). What one of them throws reaches the caller. */
final class Dispatcher implements EventDispatcherInterface
{
    /** @param ListenerProviderInterface $listeners says who is told of an event, and in which order */
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
