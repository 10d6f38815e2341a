<?php

declare(strict_types=1);

namespace Surus;

/** A value that the memory shared by all workers has no room for, or that is not what an operation needs. */
final class StoreException extends \RuntimeException
{
}
