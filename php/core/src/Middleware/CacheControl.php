<?php

declare(strict_types=1);

namespace Surus\Middleware;

use Surus\Http\Middleware;
use Surus\Http\Request;
use Surus\Http\Response;

/** What caches may do with responses that say nothing about it. One that sets a cookie, and errors, no cache keeps. */
final class CacheControl implements Middleware
{
    private function __construct(private readonly string $value)
    {
    }

    /** Nobody keeps it. */
    public static function never(): self
    {
        return new self('no-store');
    }

    /** Only the visitor's browser keeps it. */
    public static function private(int $seconds): self
    {
        return new self("private, max-age=$seconds");
    }

    /** Everybody keeps it. */
    public static function public(int $seconds, int $staleWhileRevalidate = 0): self
    {
        return new self("public, max-age=$seconds" . ($staleWhileRevalidate > 0 ? ", stale-while-revalidate=$staleWhileRevalidate" : ''));
    }

    /** For what is under an address of its own for ever: files with a hash in their names. */
    public static function immutable(): self
    {
        return new self('public, max-age=31536000, immutable');
    }

    public function handle(Request $request, \Closure $next): Response
    {
        $response = $next($request);
        if ($response->header('cache-control') !== null) {
            return $response;
        }
        $open = in_array($request->method(), ['GET', 'HEAD'], true) && $response->status() < 400 && $response->header('set-cookie') === null;

        return $response->withHeader('cache-control', $open ? $this->value : 'no-store');
    }
}
