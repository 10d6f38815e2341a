<?php

declare(strict_types=1);

namespace Surus\Schema;

/** A regular expression that the text matches: without delimiters, and not anchored unless it says so with ^ and $. */
#[\Attribute(\Attribute::TARGET_PARAMETER | \Attribute::TARGET_PROPERTY)]
final class Pattern extends Constraint
{
    /**
     * @param string $pattern takes linear time, so it has no look-around and no back references
     *
     * @throws \InvalidArgumentException if it has delimiters
     */
    public function __construct(
        public readonly string $pattern,
        ?string $message = null,
    ) {
        parent::__construct($message);
        // As for preg_match(): with them it would match nothing that is meant.
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
