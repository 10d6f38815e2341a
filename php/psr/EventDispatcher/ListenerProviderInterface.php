<?php

declare(strict_types=1);

namespace Psr\EventDispatcher;

/** PSR-14, for where no package declares it. */
interface ListenerProviderInterface
{
    /** @return iterable<callable> */
    public function getListenersForEvent(object $event): iterable;
}
