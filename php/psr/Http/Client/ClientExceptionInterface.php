<?php

declare(strict_types=1);

namespace Psr\Http\Client;

/** PSR-18, used if no package declares it. */
interface ClientExceptionInterface extends \Throwable
{
}
