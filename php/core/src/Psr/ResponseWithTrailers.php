<?php

declare(strict_types=1);

namespace Surus\Psr;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;

/**
 * A PSR-7 response with the trailers of the Surus response, which PSR-7 does not support: middleware that changes the
 * response keeps them; they are lost if another response replaces it.
 *
 * Parameters have no types, so that it is compatible with psr/http-message 1 and 2.
 *
 * @internal
 */
final class ResponseWithTrailers implements ResponseInterface
{
    /** @param array<string, string|\Closure(): string> $trailers as of Response::withTrailers() */
    public function __construct(private ResponseInterface $inner, public readonly array $trailers)
    {
    }

    public function getStatusCode(): int
    {
        return $this->inner->getStatusCode();
    }

    public function withStatus($code, $reasonPhrase = ''): static
    {
        return $this->with($this->inner->withStatus($code, $reasonPhrase));
    }

    public function getReasonPhrase(): string
    {
        return $this->inner->getReasonPhrase();
    }

    public function getProtocolVersion(): string
    {
        return $this->inner->getProtocolVersion();
    }

    public function withProtocolVersion($version): static
    {
        return $this->with($this->inner->withProtocolVersion($version));
    }

    /** @return array<array-key, list<string>> */
    public function getHeaders(): array
    {
        return $this->inner->getHeaders();
    }

    public function hasHeader($name): bool
    {
        return $this->inner->hasHeader($name);
    }

    /** @return list<string> */
    public function getHeader($name): array
    {
        return $this->inner->getHeader($name);
    }

    public function getHeaderLine($name): string
    {
        return $this->inner->getHeaderLine($name);
    }

    public function withHeader($name, $value): static
    {
        return $this->with($this->inner->withHeader($name, $value));
    }

    public function withAddedHeader($name, $value): static
    {
        return $this->with($this->inner->withAddedHeader($name, $value));
    }

    public function withoutHeader($name): static
    {
        return $this->with($this->inner->withoutHeader($name));
    }

    public function getBody(): StreamInterface
    {
        return $this->inner->getBody();
    }

    public function withBody(StreamInterface $body): static
    {
        return $this->with($this->inner->withBody($body));
    }

    private function with(ResponseInterface $inner): static
    {
        return new self($inner, $this->trailers);
    }
}
