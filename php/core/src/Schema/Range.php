<?php

declare(strict_types=1);

namespace Surus\Schema;

/** The range of a number. `min` and `max` are included, `above` and `below` are not. */
#[\Attribute(\Attribute::TARGET_PARAMETER | \Attribute::TARGET_PROPERTY)]
final class Range extends Constraint
{
    /** @param int|float|null $step the number is a multiple of it */
    public function __construct(
        public readonly int|float|null $min = null,
        public readonly int|float|null $max = null,
        public readonly int|float|null $above = null,
        public readonly int|float|null $below = null,
        public readonly int|float|null $step = null,
        ?string $message = null,
    ) {
        parent::__construct($message);
    }

    public function shapes(): array
    {
        return ['integer', 'number'];
    }

    public function keywords(): array
    {
        return [
            'minimum' => $this->min,
            'maximum' => $this->max,
            'exclusiveMinimum' => $this->above,
            'exclusiveMaximum' => $this->below,
            'multipleOf' => $this->step,
        ];
    }
}
