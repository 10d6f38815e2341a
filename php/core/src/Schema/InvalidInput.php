<?php

declare(strict_types=1);

namespace Surus\Schema;

use Surus\Http\HttpException;
use Surus\Http\Response;

/**
 * Refused input: malformed (400), too large (413), of another media type (415), or in violation of the rules (422). It
 * is thrown instead of calling the handler, if there is middleware or an error handler for it.
 */
final class InvalidInput extends HttpException
{
    /**
     * @internal
     *
     * @param string $problem the response, as a problem document
     */
    public function __construct(int $status, private readonly string $problem, string $accepted)
    {
        parent::__construct($status, Response::reason($status), $accepted === '' ? [] : ['accept-post' => $accepted]);
    }

    /**
     * The violations; empty unless the status is 422.
     *
     * @return list<array{in: string, pointer: string, rule: string, message: string, parameters?: array<string, mixed>}>
     */
    public function errors(): array
    {
        return json_decode($this->problem, true, 512, JSON_THROW_ON_ERROR)['errors'] ?? [];
    }

    /** The response if there is no error handler. */
    public function response(): Response
    {
        return new Response($this->problem, $this->getStatusCode(), $this->getHeaders() + ['content-type' => 'application/problem+json']);
    }
}
