<?php

declare(strict_types=1);

namespace Surus\Middleware;

use Surus\Http\Cookie;
use Surus\Http\HttpException;
use Surus\Http\Middleware;
use Surus\Http\Request;
use Surus\Http\Response;

/** While a file exists, all clients get 503, except those with the key: `/?maintenance=KEY` lets a browser in. */
final class Maintenance implements Middleware
{
    /** @param ?string $key null: nobody has access */
    public function __construct(
        private readonly string $file,
        private readonly int $retryAfter = 300,
        #[\SensitiveParameter] private readonly ?string $key = null,
    ) {
    }

    public function handle(Request $request, \Closure $next): Response
    {
        // PHP caches that files exist, not that they are missing: the end of maintenance must be seen at once.
        clearstatcache(true, $this->file);
        if (!file_exists($this->file)) {
            return $next($request);
        }
        $given = $request->query('maintenance');
        if ($this->knows($given)) {
            return $next($request)->withCookie(new Cookie('maintenance', $this->mark(), secure: $request->isSecure()));
        }
        if ($this->key !== null && hash_equals($this->mark(), $request->cookie('maintenance') ?? '')) {
            return $next($request);
        }
        throw new HttpException(503, 'The site is being worked on', ['retry-after' => (string) $this->retryAfter, 'cache-control' => 'no-store']);
    }

    private function knows(mixed $given): bool
    {
        return $this->key !== null && is_string($given) && hash_equals($this->key, $given);
    }

    /** The value of the cookie: not the key itself, since cookies are visible in more places. */
    private function mark(): string
    {
        return hash_hmac('sha256', 'maintenance', (string) $this->key);
    }
}
