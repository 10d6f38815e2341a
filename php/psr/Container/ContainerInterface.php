<?php

declare(strict_types=1);

namespace Psr\Container;

/** PSR-11, used if no package declares it. Results have no types: it is compatible with classes for any version. */
interface ContainerInterface
{
    /**
     * @return mixed
     *
     * @throws NotFoundExceptionInterface if there is no such entry
     * @throws ContainerExceptionInterface if it cannot be made
     */
    public function get(string $id);

    /** @return bool */
    public function has(string $id);
}
