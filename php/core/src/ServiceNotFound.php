<?php

declare(strict_types=1);

namespace Surus;

use Psr\Container\NotFoundExceptionInterface;

/** This service is not declared, and it is not a class of which an object can be made. */
final class ServiceNotFound extends BootError implements NotFoundExceptionInterface
{
}
