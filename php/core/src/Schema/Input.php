<?php

declare(strict_types=1);

namespace Surus\Schema;

/** Marks a class as one that input becomes. One whose constructor has attributes of this namespace needs no mark. */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class Input
{
    /**
     * @param bool $strict refuses what the class does not declare; else it is ignored
     * @param int|null $maxBytes of a body of this class
     * @param int|null $maxDepth levels of arrays and objects
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
