<?php

declare(strict_types=1);

namespace Surus\Schema;

/** A response of a handler, for documents, if its return type does not describe it. */
#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::TARGET_FUNCTION | \Attribute::IS_REPEATABLE)]
final class Returns
{
    /**
     * @param int $status HTTP status
     * @param string|null $type like in a doc comment: a class, `list<User>`, `array{id: int}`; null: no body
     * @param string|null $mediaType of the body; JSON unless the type is a string
     */
    public function __construct(
        public readonly int $status = 200,
        public readonly ?string $type = null,
        public readonly ?string $description = null,
        public readonly ?string $mediaType = null,
        public readonly mixed $example = null,
    ) {
    }
}
