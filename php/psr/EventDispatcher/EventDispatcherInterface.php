<?php

declare(strict_types=1);

namespace Psr\EventDispatcher;

/** PSR-14, used if no package declares it. */
interface EventDispatcherInterface
{
    /** @return object the event, after the listeners that are relevant to it */
    public function dispatch(object $event);
}
