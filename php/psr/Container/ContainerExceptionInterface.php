<?php

declare(strict_types=1);

namespace Psr\Container;

/** PSR-11, used if no package declares it. */
interface ContainerExceptionInterface extends \Throwable
{
}
