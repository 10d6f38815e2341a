<?php

declare(strict_types=1);

namespace Surus;

/** What Surus\timeout() or Surus\offload() ran was not done in time, and was cancelled. */
final class TimeoutException extends \RuntimeException
{
}
