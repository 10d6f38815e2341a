<?php

declare(strict_types=1);

namespace Psr\EventDispatcher;

/** PSR-14, used if no package declares it. */
interface StoppableEventInterface
{
    /** Whether no further listener must be called. */
    public function isPropagationStopped(): bool;
}
