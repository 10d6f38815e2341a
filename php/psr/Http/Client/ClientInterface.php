<?php

declare(strict_types=1);

namespace Psr\Http\Client;

use Psr\Http\Message\RequestInterface;
use Psr\Http\Message\ResponseInterface;

/** PSR-18, used if no package declares it. */
interface ClientInterface
{
    /**
     * @return ResponseInterface whatever its status is
     *
     * @throws ClientExceptionInterface if there is no response
     */
    public function sendRequest(RequestInterface $request): ResponseInterface;
}
