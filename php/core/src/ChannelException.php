<?php

declare(strict_types=1);

namespace Surus;

/** Nothing can be published, or read: there is no server, or the history of a channel is not available. */
final class ChannelException extends \RuntimeException
{
}
