<?php

declare(strict_types=1);

namespace Surus\Schema;

/** The type of the elements of an array, and rules for them. */
#[\Attribute(\Attribute::TARGET_PARAMETER | \Attribute::TARGET_PROPERTY)]
final class Each
{
    /**
     * @param string $type a class, an enum, "int", "float", "bool", "string" or "mixed", with "?" before it for null
     * @param list<Constraint|AnyRule> $rules of each element
     * @param bool $map true: keys are strings; false: the array is a list
     */
    public function __construct(
        public readonly string $type,
        public readonly array $rules = [],
        public readonly bool $map = false,
    ) {
    }
}
