<?php

declare(strict_types=1);

namespace Surus\Middleware;

use Surus\Http\Middleware;
use Surus\Http\Request;
use Surus\Http\Response;

/**
 * Takes the client's address, the scheme and the host from X-Forwarded-… headers of known proxies. From other clients
 * these headers are ignored.
 */
final class TrustedProxies implements Middleware
{
    /** @var list<array{string, int}> */
    private readonly array $networks;

    /** @param list<string> $proxies addresses, or networks like "10.0.0.0/8" */
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
        $hops = self::list($request, 'x-forwarded-for');
        $schemes = self::list($request, 'x-forwarded-proto');
        $aligned = count($schemes) === count($hops);
        $values = [];
        // Each proxy appends the address of its client: the last address that is not a trusted proxy is the client. An
        // invalid entry ends the search.
        for ($hop = count($hops) - 1; $hop >= 0; $hop--) {
            // The proxies append to both lists, or one of them sets the scheme for all.
            $scheme = $schemes === [] ? '' : ($aligned ? $schemes[$hop] : $schemes[count($schemes) - 1]);
            $values = self::scheme($scheme) + $values;
            $address = self::address($hops[$hop]);
            if ($address === null) {
                break;
            }
            $ip = $address;
            if (!$this->isTrusted($ip)) {
                break;
            }
        }
        if ($hops === [] && $schemes !== []) {
            $values = self::scheme($schemes[count($schemes) - 1]);
        }
        $values['ip'] = $ip;
        // With several proxies the value of the nearest one, which is the last.
        $hosts = self::list($request, 'x-forwarded-host');
        $host = $hosts === [] ? '' : $hosts[count($hosts) - 1];
        if ($host !== '') {
            $values['host'] = $host;
        }
        $request->forwarded($values);

        return $next($request);
    }

    /** @return list<string> */
    private static function list(Request $request, string $name): array
    {
        $line = $request->headers()[$name] ?? null;

        return $line === null ? [] : array_map(trim(...), explode(',', $line));
    }

    /** @return array{scheme?: string} */
    private static function scheme(string $scheme): array
    {
        $scheme = strtolower($scheme);

        return $scheme === 'https' || $scheme === 'http' ? ['scheme' => $scheme] : [];
    }

    /** "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:80" */
    private static function address(string $hop): ?string
    {
        if (preg_match('/^(?:([0-9.]+)|\[([0-9a-f:.]+)\])(?::\d{1,5})?$/Di', $hop, $found) === 1) {
            $hop = ($found[2] ?? '') !== '' ? $found[2] : $found[1];
        }
        if (filter_var($hop, FILTER_VALIDATE_IP) === false) {
            return null;
        }

        return (string) inet_ntop(self::bytes($hop));
    }

    /** The bytes of an address; an IPv4-mapped IPv6 address is IPv4. */
    private static function bytes(string $ip): string
    {
        $bytes = (string) @inet_pton($ip);

        return str_starts_with($bytes, str_repeat("\0", 10) . "\xff\xff") ? substr($bytes, 12) : $bytes;
    }

    private function isTrusted(string $ip): bool
    {
        $bytes = self::bytes($ip);
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
