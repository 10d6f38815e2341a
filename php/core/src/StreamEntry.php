<?php

declare(strict_types=1);

namespace Surus;

/** An entry of a {@see Stream}, as a group reads it. */
final class StreamEntry
{
    /** @internal */
    public function __construct(
        public readonly int $position,
        public readonly mixed $payload,
        /** How often the group has read it, with this time, as far as the process with the streams knows. */
        public readonly int $attempt,
        /** Seconds since 1970. */
        public readonly float $appendedAt,
    ) {
    }
}
