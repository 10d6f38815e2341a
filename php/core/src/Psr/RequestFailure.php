<?php

declare(strict_types=1);

namespace Surus\Psr;

use Psr\Http\Client\RequestExceptionInterface;
use Psr\Http\Message\RequestInterface;

/** A request that Surus\Psr\HttpClient cannot send: the message says why. */
final class RequestFailure extends \RuntimeException implements RequestExceptionInterface
{
    public function __construct(private readonly RequestInterface $request, string $message, int $code = 0)
    {
        parent::__construct($message, $code);
    }

    public function getRequest(): RequestInterface
    {
        return $this->request;
    }
}
