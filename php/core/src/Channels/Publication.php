<?php

declare(strict_types=1);

namespace Surus\Channels;

/** Something that was published on a channel. */
final class Publication
{
    /** @param string $position where it is in the history of the channel */
    public function __construct(
        public readonly string $channel,
        public readonly string $position,
        public readonly string $event,
        public readonly string $data,
        public readonly bool $binary,
    ) {
    }
}
