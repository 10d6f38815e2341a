<?php

declare(strict_types=1);

namespace Surus;

/** A job could not be pushed, taken or ended: the message says why. */
final class QueueException extends \RuntimeException
{
}
