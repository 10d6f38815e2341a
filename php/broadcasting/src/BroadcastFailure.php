<?php

declare(strict_types=1);

namespace Surus\Broadcasting;

/** An event could not be published. */
final class BroadcastFailure extends \RuntimeException
{
}
