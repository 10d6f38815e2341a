<?php

declare(strict_types=1);

namespace Surus;

/** A Surus\Channel is closed. */
final class ChannelClosed extends \RuntimeException
{
}
