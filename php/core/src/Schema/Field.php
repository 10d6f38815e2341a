<?php

declare(strict_types=1);

namespace Surus\Schema;

/** How a parameter is called in input, and what documents say about it. */
#[\Attribute(\Attribute::TARGET_PARAMETER | \Attribute::TARGET_PROPERTY)]
final class Field
{
    /**
     * @param string|null $name in input, in place of the parameter's
     * @param string|null $description for documents
     * @param mixed $example for documents; null for none
     */
    public function __construct(
        public readonly ?string $name = null,
        public readonly ?string $description = null,
        public readonly mixed $example = null,
        public readonly bool $deprecated = false,
    ) {
    }
}
