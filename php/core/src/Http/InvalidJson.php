<?php

declare(strict_types=1);

namespace Surus\Http;

/** The body of a request is not JSON: if it is not caught, the client gets a 400. */
final class InvalidJson extends \JsonException
{
    public function getStatusCode(): int
    {
        return 400;
    }
}
