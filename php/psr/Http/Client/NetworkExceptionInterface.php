<?php

declare(strict_types=1);

namespace Psr\Http\Client;

use Psr\Http\Message\RequestInterface;

/** PSR-18, used if no package declares it. The network is at fault: the request may succeed later. */
interface NetworkExceptionInterface extends ClientExceptionInterface
{
    public function getRequest(): RequestInterface;
}
