<?php

declare(strict_types=1);

namespace Surus\Schema;

use Surus\Http\HttpException;
use Surus\Http\Response;

/**
 * Input that its class does not take: malformed (400), too large (413), of another media type (415), or against the
 * rules (422). It is thrown in the handler's place, where there is middleware or an error handler to see it.
 */
final class InvalidInput extends HttpException
{
    /**
     * @internal
     *
     * @param string $problem the answer, as a problem document
     */
    public function __construct(int $status, private readonly string $problem, string $accepted)
    {
        parent::__construct($status, Response::reason($status), $accepted === '' ? [] : ['accept-post' => $accepted]);
    }

    /**
     * What is wrong; empty unless the status is 422.
     *
     * @return list<array{in: string, pointer: string, rule: string, message: string, parameters?: array<string, mixed>}>
     */
    public function errors(): array
    {
        return json_decode($this->problem, true, 512, JSON_THROW_ON_ERROR)['errors'] ?? [];
    }

    /** What a client is told without an error handler. */
    public function response(): Response
    {
        return new Response($this->problem, $this->getStatusCode(), $this->getHeaders() + ['content-type' => 'application/problem+json']);
    }
}
