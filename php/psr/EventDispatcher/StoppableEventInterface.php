<?php

declare(strict_types=1);

namespace Psr\EventDispatcher;

/** PSR-14, for where no package declares it. */
interface StoppableEventInterface
{
    /** Whether no further listener is to be called. */
    public function isPropagationStopped(): bool;
}
