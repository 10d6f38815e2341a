<?php

declare(strict_types=1);

namespace Surus\Middleware;

use Surus\Http\HttpException;
use Surus\Http\Middleware;
use Surus\Http\Request;
use Surus\Http\Response;

/** Refuses requests with a wrong host name: links made from the Host header would lead to another site. */
final class TrustedHosts implements Middleware
{
    /** @param list<string> $hosts names without a port; "*.example.com" is every subdomain */
    public function __construct(private readonly array $hosts)
    {
        foreach ($hosts as $host) {
            if (preg_match('/^(?:(?:\*\.)?[a-z0-9_.-]+|\[[0-9a-f:.]+\])$/Di', $host) !== 1) {
                throw new \InvalidArgumentException("\"$host\" is no name of a host: \"example.com\", or \"*.example.com\" for all below");
            }
        }
    }

    public function handle(Request $request, \Closure $next): Response
    {
        $host = (string) preg_replace('/:\d+$/', '', $request->host());
        foreach ($this->hosts as $trusted) {
            $trusted = strtolower($trusted);
            if ($host === $trusted || (str_starts_with($trusted, '*.') && str_ends_with($host, substr($trusted, 1)) && strlen($host) > strlen($trusted) - 1)) {
                return $next($request);
            }
        }
        throw new HttpException(421, 'This server does not answer for this name');
    }
}
