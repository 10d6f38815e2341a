<?php

declare(strict_types=1);

namespace Surus\Channels;

/** Somebody who is in a channel, with one connection or more. */
final class Member
{
    /**
     * @param string $id its name, of which there is one in a channel
     * @param mixed $info what was said of it with {@see \Surus\WebSocket::join()}: of JSON, so objects are arrays
     */
    public function __construct(
        public readonly string $id,
        public readonly mixed $info,
    ) {
    }
}
