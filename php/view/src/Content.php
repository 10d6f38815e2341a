<?php

declare(strict_types=1);

namespace Surus\View;

/**
 * The inner template, where its layout prints it.
 *
 * @internal
 */
final class Content implements \Stringable
{
    /** @param \Closure(): void $print */
    public function __construct(private readonly \Closure $print)
    {
    }

    /** Prints it right here, piece by piece; nothing is left to be said. */
    public function __toString(): string
    {
        ($this->print)();

        return '';
    }
}
