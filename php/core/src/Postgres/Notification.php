<?php

declare(strict_types=1);

namespace Surus\Postgres;

/** What {@see \Surus\Postgres::listen()} has received. */
final class Notification
{
    /**
     * @internal
     * @param string $payload the text that was sent
     * @param int $process the server's process that has sent it
     * @param bool $missed nothing was received: the connection was lost, or too much has come at once, so that notifications may have
     *     been missed. Read anew what they are about. From here on nothing is missed
     */
    public function __construct(
        public readonly string $channel,
        public readonly string $payload,
        public readonly int $process,
        public readonly bool $missed,
    ) {
    }
}
