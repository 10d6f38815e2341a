<?php

declare(strict_types=1);

namespace Psr\Container;

/** PSR-11, for where no package declares it. The results have no types: classes made for any version fit. */
interface ContainerInterface
{
    /**
     * @return mixed
     *
     * @throws NotFoundExceptionInterface if there is no such entry
     * @throws ContainerExceptionInterface if it cannot be had
     */
    public function get(string $id);

    /** @return bool */
    public function has(string $id);
}
