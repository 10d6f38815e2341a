<?php

declare(strict_types=1);

namespace Surus\Testing;

/**
 * How a request gets to the application.
 *
 * @internal
 */
interface Transport
{
    /**
     * @param string $target path and query
     * @param list<string> $head lines "Name: value"
     *
     * @return array{int, list<string>, string} status, lines of the head, body
     */
    public function send(string $method, string $target, array $head, string $body): array;
}
