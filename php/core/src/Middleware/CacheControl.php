<?php

declare(strict_types=1);

namespace Surus\Middleware;

use Surus\Http\Middleware;
use Surus\Http\Request;
use Surus\Http\Response;

/** Sets cache-control if it is missing; no-store for errors, new cookies, and methods other than GET and HEAD. */
final class CacheControl implements Middleware
{
    private function __construct(private readonly string $value)
    {
    }

    /** It is not cached. */
    public static function never(): self
    {
        return new self('no-store');
    }

    /** Only the client's browser caches it. */
    public static function private(int $seconds): self
    {
        return new self("private, max-age=$seconds");
    }

    /** All caches may store it. */
    public static function public(int $seconds, int $staleWhileRevalidate = 0): self
    {
        return new self("public, max-age=$seconds" . ($staleWhileRevalidate > 0 ? ", stale-while-revalidate=$staleWhileRevalidate" : ''));
    }

    /** For content that never changes at its address: files with a hash in their names. */
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
