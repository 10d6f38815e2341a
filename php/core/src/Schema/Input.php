<?php

declare(strict_types=1);

namespace Surus\Schema;

/** Marks an input class. A class whose constructor has attributes of this namespace needs no mark. */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class Input
{
    /**
     * @param bool $strict true: fields that the class does not declare are refused; false: they are ignored
     * @param int|null $maxBytes maximum size of a body of this class
     * @param int|null $maxDepth maximum levels of arrays and objects
     * @param array<string, mixed>|null $example for documents
     */
    public function __construct(
        public readonly bool $strict = false,
        public readonly ?int $maxBytes = null,
        public readonly ?int $maxDepth = null,
        public readonly ?array $example = null,
    ) {
    }
}
