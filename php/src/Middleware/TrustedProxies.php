<?php

declare(strict_types=1);

namespace Surus\Middleware;

use Surus\Http\Middleware;
use Surus\Http\Request;
use Surus\Http\Response;

/**
 * Takes the client's address, the scheme and the host from X-Forwarded-… headers of known proxies. From anybody else
 * they are only text.
 */
final class TrustedProxies implements Middleware
{
    /** @var list<array{string, int}> */
    private readonly array $networks;

    /** @param list<string> $proxies addresses, or networks as "10.0.0.0/8" */
    public function __construct(array $proxies)
    {
        $networks = [];
        foreach ($proxies as $proxy) {
            [$address, $bits] = explode('/', $proxy, 2) + [1 => null];
            $bytes = @inet_pton($address);
            if ($bytes === false || ($bits !== null && (!ctype_digit($bits) || (int) $bits > strlen($bytes) * 8))) {
                throw new \InvalidArgumentException("\"$proxy\" is neither an address nor a network");
            }
            $networks[] = [$bytes, $bits === null ? strlen($bytes) * 8 : (int) $bits];
        }
        $this->networks = $networks;
    }

    public function handle(Request $request, \Closure $next): Response
    {
        $ip = $request->ip();
        if (!$this->isTrusted($ip)) {
            return $next($request);
        }
        // Each proxy adds whom it talked to at the end: the last one that is no proxy of ours is the client.
        foreach (array_reverse(explode(',', $request->headers()['x-forwarded-for'] ?? '')) as $hop) {
            $hop = (string) preg_replace('/^\[?([0-9a-f:.]+?)\]?(?::\d+)?$/Di', '$1', trim($hop));
            if (filter_var($hop, FILTER_VALIDATE_IP) === false) {
                break;
            }
            $ip = $hop;
            if (!$this->isTrusted($hop)) {
                break;
            }
        }
        $values = ['ip' => $ip];
        // Of several proxies the nearest one's word, which is the last.
        $scheme = strtolower(self::last($request, 'x-forwarded-proto'));
        if ($scheme === 'https' || $scheme === 'http') {
            $values['scheme'] = $scheme;
        }
        $host = self::last($request, 'x-forwarded-host');
        if ($host !== '') {
            $values['host'] = $host;
        }
        $request->forwarded($values);

        return $next($request);
    }

    private static function last(Request $request, string $name): string
    {
        $values = explode(',', $request->headers()[$name] ?? '');

        return trim($values[count($values) - 1]);
    }

    private function isTrusted(string $ip): bool
    {
        $bytes = @inet_pton($ip);
        if ($bytes === false) {
            return false;
        }
        foreach ($this->networks as [$network, $bits]) {
            if (strlen($network) !== strlen($bytes)) {
                continue;
            }
            $whole = intdiv($bits, 8);
            $mask = (0xff << (8 - $bits % 8)) & 0xff;
            $same = substr($bytes, 0, $whole) === substr($network, 0, $whole);
            if ($same && ($bits % 8 === 0 || (ord($bytes[$whole]) & $mask) === (ord($network[$whole]) & $mask))) {
                return true;
            }
        }

        return false;
    }
}
