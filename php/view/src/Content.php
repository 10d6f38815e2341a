<?php

declare(strict_types=1);

namespace Surus\View;

/**
 * The inner template, which its layout prints.
 *
 * @internal
 */
final class Content implements \Stringable
{
    /** @param \Closure(): void $print */
    public function __construct(private readonly \Closure $print)
    {
    }

    /** Prints it directly, piece by piece; the returned text is empty. */
    public function __toString(): string
    {
        ($this->print)();

        return '';
    }
}
