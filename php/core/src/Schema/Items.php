<?php

declare(strict_types=1);

namespace Surus\Schema;

/** The number of elements of an array, both bounds included, and whether they must be different. */
#[\Attribute(\Attribute::TARGET_PARAMETER | \Attribute::TARGET_PROPERTY)]
final class Items extends Constraint
{
    /** @param bool $unique no two elements are equal */
    public function __construct(
        public readonly ?int $min = null,
        public readonly ?int $max = null,
        public readonly bool $unique = false,
        ?string $message = null,
    ) {
        parent::__construct($message);
    }

    public function shapes(): array
    {
        return ['list', 'map'];
    }

    public function keywords(): array
    {
        return ['minItems' => $this->min, 'maxItems' => $this->max] + ($this->unique ? ['unique' => true] : []);
    }
}
