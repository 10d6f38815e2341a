<?php

declare(strict_types=1);

namespace Psr\Container;

/** PSR-11, for where no package declares it. The results have no types: classes made for any version fit. */
interface ContainerInterface
{
    public function get(string $id);

    public function has(string $id);
}
