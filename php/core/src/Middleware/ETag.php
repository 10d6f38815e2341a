<?php

declare(strict_types=1);

namespace Surus\Middleware;

use Surus\Http\ETags;
use Surus\Http\Middleware;
use Surus\Http\Request;
use Surus\Http\Response;

/** Adds an entity tag to whole responses to GET, and answers 304 to clients that have them already. */
final class ETag implements Middleware
{
    public function handle(Request $request, \Closure $next): Response
    {
        $response = $next($request);
        $body = $response->body();
        if (!in_array($request->method(), ['GET', 'HEAD'], true) || $response->status() !== 200 || !is_string($body)) {
            return $response;
        }
        $tag = $response->header('etag');
        if ($tag === null) {
            $tag = 'W/"' . hash('xxh128', $body) . '"';
            $response = $response->withHeader('etag', $tag);
        }
        $wanted = $request->headers()['if-none-match'] ?? null;
        if ($wanted === null || !ETags::matches($wanted, $tag)) {
            return $response;
        }

        return new Response(null, 304, array_diff_key(array_change_key_case($response->headers()), ['content-type' => 1, 'content-length' => 1]));
    }
}
