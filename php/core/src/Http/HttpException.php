<?php

declare(strict_types=1);

namespace Surus\Http;

/** An exception that becomes a response: the message is its detail, which the client sees. */
class HttpException extends \RuntimeException
{
    /**
     * @param int $status from 400 to 599
     * @param array<string, string> $headers
     * @param array<string, mixed> $members more members of the problem document
     */
    public function __construct(
        private readonly int $status,
        string $message = '',
        private readonly array $headers = [],
        public readonly array $members = [],
        ?\Throwable $previous = null,
    ) {
        if ($status < 400 || $status > 599) {
            throw new \ValueError("$status is no status of an error: those are 400 to 599");
        }
        parent::__construct($message, 0, $previous);
    }

    /** From 400 to 599. */
    public function getStatusCode(): int
    {
        return $this->status;
    }

    /** @return array<string, string> */
    public function getHeaders(): array
    {
        return $this->headers;
    }
}
