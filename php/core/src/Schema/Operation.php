<?php

declare(strict_types=1);

namespace Surus\Schema;

/** Information about a handler for documents, besides its signature and its doc comment. */
#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::TARGET_FUNCTION)]
final class Operation
{
    /**
     * @param list<string> $tags under which it is listed
     * @param bool $hidden documents do not contain it
     */
    public function __construct(
        public readonly ?string $summary = null,
        public readonly ?string $description = null,
        public readonly array $tags = [],
        public readonly ?string $id = null,
        public readonly bool $deprecated = false,
        public readonly bool $hidden = false,
    ) {
    }
}
