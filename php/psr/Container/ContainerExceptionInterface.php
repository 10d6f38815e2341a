<?php

declare(strict_types=1);

namespace Psr\Container;

/** PSR-11, for where no package declares it. */
interface ContainerExceptionInterface extends \Throwable
{
}
