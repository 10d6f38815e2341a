<?php

declare(strict_types=1);

namespace Surus;

use Psr\Container\NotFoundExceptionInterface;

/** Nobody has declared this service, and it is no class that could be made. */
final class ServiceNotFound extends BootError implements NotFoundExceptionInterface
{
}
