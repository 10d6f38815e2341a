<?php

declare(strict_types=1);

namespace Surus;

/** A message was sent to a WebSocket that is over: its client has closed it, or is gone. */
final class WebSocketClosed extends \RuntimeException
{
    /** @param WebSocket $socket the one that is over */
    public function __construct(public readonly WebSocket $socket)
    {
        parent::__construct('The WebSocket is closed');
    }
}
