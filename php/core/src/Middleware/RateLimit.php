<?php

declare(strict_types=1);

namespace Surus\Middleware;

use Surus\Http\HttpException;
use Surus\Http\Middleware;
use Surus\Http\Request;
use Surus\Http\Response;

use function Surus\Internal\take_tokens;

/** Limits the number of requests in a time, counted for all workers of the server together. Beyond it: 429. */
final class RateLimit implements Middleware
{
    private readonly float $rate;

    /**
     * @param int $requests maximum at once; tokens are refilled evenly over the time
     * @param float $seconds
     * @param ?\Closure(Request): ?string $by a key of the client; null from it: no limit. By default its address (of
     *     an IPv6 client, the /64)
     * @param string $name limits with different names are counted separately
     */
    public function __construct(
        private readonly int $requests,
        float $seconds,
        private readonly ?\Closure $by = null,
        private readonly string $name = '',
    ) {
        if ($requests < 1 || $seconds <= 0) {
            throw new \InvalidArgumentException('A limit is at least one request in some time');
        }
        $this->rate = $requests / $seconds;
    }

    public function handle(Request $request, \Closure $next): Response
    {
        $who = $this->by === null ? self::network($request->ip()) : ($this->by)($request);
        if ($who === null) {
            return $next($request);
        }
        [$allowed, $remaining, $retry, $reset] = take_tokens("$this->name\0$who", $this->rate, (float) $this->requests);
        $headers = [
            'ratelimit-limit' => (string) $this->requests,
            'ratelimit-remaining' => (string) $remaining,
            'ratelimit-reset' => (string) (int) ceil($reset),
        ];
        if (!$allowed) {
            throw new HttpException(429, '', ['retry-after' => (string) max(1, (int) ceil($retry))] + $headers);
        }

        return $next($request)->withHeaders($headers);
    }

    /** The network of an address: one IPv6 customer has a whole /64. */
    private static function network(string $ip): string
    {
        $bytes = inet_pton($ip);

        return $bytes !== false && strlen($bytes) === 16 ? bin2hex(substr($bytes, 0, 8)) : $ip;
    }
}
