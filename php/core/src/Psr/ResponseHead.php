<?php

declare(strict_types=1);

namespace Surus\Psr;

use Psr\Http\Message\ResponseFactoryInterface;
use Psr\Http\Message\ResponseInterface;

/**
 * The head of a response, as curl gives it line by line: of interim responses, of the final one, and trailers behind it.
 *
 * @internal
 */
final class ResponseHead
{
    private string $version = '1.1';

    private int $status = 0;

    private string $reason = '';

    /** @var list<array{string, string}> */
    private array $fields = [];

    private bool $is_complete = false;

    /** @return int its length, or 0 to break off */
    public function add(string $line): int
    {
        $text = \rtrim($line, "\r\n");
        if (\preg_match('~^HTTP/(\d(?:\.\d)?) (\d{3})(?: (.*))?$~D', $text, $parts) === 1) {
            [$this->version, $this->status, $this->reason] = [$parts[1], (int) $parts[2], $parts[3] ?? ''];
            [$this->fields, $this->is_complete] = [[], false];
        } elseif ($text === '') {
            $this->is_complete = true;
        } elseif (!$this->is_complete && $this->fields !== [] && ($text[0] === ' ' || $text[0] === "\t")) {
            $this->fields[\count($this->fields) - 1][1] .= ' ' . \trim($text);
        } elseif (!$this->is_complete && \str_contains($text, ':')) {
            [$name, $value] = \explode(':', $text, 2);
            $this->fields[] = [$name, \trim($value, " \t")];
        }
        return \strlen($line);
    }

    public function response(ResponseFactoryInterface $responses): ResponseInterface
    {
        $response = $responses->createResponse($this->status, $this->reason)->withProtocolVersion($this->version);
        foreach ($this->fields as [$name, $value]) {
            $response = $response->withAddedHeader($name, $value);
        }
        return $response;
    }
}
