<?php

declare(strict_types=1);

namespace Psr\EventDispatcher;

/** PSR-14, used if no package declares it. */
interface ListenerProviderInterface
{
    /** @return iterable<callable> */
    public function getListenersForEvent(object $event): iterable;
}
