<?php

declare(strict_types=1);

namespace Surus\Schema;

/** The name of a parameter in input, and its description in documents. */
#[\Attribute(\Attribute::TARGET_PARAMETER | \Attribute::TARGET_PROPERTY)]
final class Field
{
    /**
     * @param string|null $name in input, instead of the parameter's name
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
