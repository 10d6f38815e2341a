<?php

declare(strict_types=1);

namespace Surus\Schema;

/** What documents say about a handler beyond what its signature and its doc comment do. */
#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::TARGET_FUNCTION)]
final class Operation
{
    /**
     * @param list<string> $tags that it is listed under
     * @param bool $hidden documents do not have it
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
