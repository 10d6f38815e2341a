<?php

declare(strict_types=1);

namespace Surus\Schema;

/** A regular expression that the text must match: without delimiters, and anchored only by ^ and $. */
#[\Attribute(\Attribute::TARGET_PARAMETER | \Attribute::TARGET_PROPERTY)]
final class Pattern extends Constraint
{
    /**
     * @param string $pattern is matched in linear time, so it has no look-around and no back references
     *
     * @throws \InvalidArgumentException if it has delimiters
     */
    public function __construct(
        public readonly string $pattern,
        ?string $message = null,
    ) {
        parent::__construct($message);
        // With delimiters, as for preg_match(), it would not match as intended.
        if (preg_match('{^([/~#])\^.*\1[a-zA-Z]*$|^([/~#]).*\$\2[a-zA-Z]*$}Ds', $pattern) === 1) {
            throw new \InvalidArgumentException("write \"$pattern\" without delimiters");
        }
    }

    public function shapes(): array
    {
        return ['string'];
    }

    public function keywords(): array
    {
        return ['pattern' => $this->pattern];
    }
}
