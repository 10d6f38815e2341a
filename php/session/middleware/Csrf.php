<?php

declare(strict_types=1);

namespace Surus\Middleware;

use Surus\Http\Cookie;
use Surus\Http\HttpException;
use Surus\Http\Middleware;
use Surus\Http\Request;
use Surus\Http\Response;
use Surus\Security\Vault;

/**
 * Refuses requests that another site makes a client's browser send.
 *
 * A request with an unsafe method needs the token of the browser's cookie in the field `_token` or the header
 * `X-CSRF-Token`, and must not have a foreign origin. Handlers get the token from {@see Csrf::token()}.
 */
final class Csrf implements Middleware
{
    private const SAFE = ['GET', 'HEAD', 'OPTIONS', 'TRACE'];

    /**
     * @param list<string> $trusted other origins whose forms may be sent here
     * @param list<string> $except paths without the check: webhooks, which have no cookies. "/hooks/*": all paths below
     */
    public function __construct(private readonly Vault $vault, private readonly array $trusted = [], private readonly array $except = [])
    {
    }

    /** The token for a form of this page. */
    public static function token(Request $request): string
    {
        $token = $request->attribute(self::class);

        return is_string($token) ? $token : throw new \LogicException('The middleware Csrf is not in front of this handler');
    }

    /** A hidden field with the token. */
    public static function field(Request $request): string
    {
        return '<input type="hidden" name="_token" value="' . htmlspecialchars(self::token($request)) . '">';
    }

    public function handle(Request $request, \Closure $next): Response
    {
        $name = $request->isSecure() ? '__Host-csrf' : 'csrf';
        $secret = $this->vault->signedCookie($request, $name);
        if (!in_array($request->method(), self::SAFE, true) && !$this->isExcepted($request->path())) {
            $this->check($request, $secret);
        }
        $fresh = $secret === null;
        $secret ??= Vault::encode(random_bytes(32));
        $request->setAttribute(self::class, $this->mask($secret));
        $response = $next($request);

        return $fresh ? $response->withCookie($this->vault->signed(new Cookie($name, $secret, sameSite: 'Lax'))) : $response;
    }

    private function check(Request $request, #[\SensitiveParameter] ?string $secret): void
    {
        $origin = $request->header('origin');
        $own = $request->scheme() . '://' . $request->host();
        if ($origin !== null && $origin !== $own && !in_array($origin, $this->trusted, true)) {
            throw new HttpException(403, 'The request comes from another site');
        }
        if ($request->header('sec-fetch-site') === 'cross-site' && !in_array($origin, $this->trusted, true)) {
            throw new HttpException(403, 'The request comes from another site');
        }
        $token = $request->header('x-csrf-token') ?? $this->submitted($request);
        if ($secret === null || !is_string($token) || !hash_equals($secret, $this->unmask($token))) {
            throw new HttpException(403, 'The form has expired: load it again');
        }
    }

    private function submitted(Request $request): mixed
    {
        return in_array($request->contentType(), ['application/x-www-form-urlencoded', 'multipart/form-data'], true) ? $request->form('_token') : null;
    }

    /** Different in each page, so that the compressed length reveals nothing about it (BREACH). */
    private function mask(#[\SensitiveParameter] string $secret): string
    {
        $mask = random_bytes(strlen($secret));

        return Vault::encode($mask . ($mask ^ $secret));
    }

    private function unmask(#[\SensitiveParameter] string $token): string
    {
        $bytes = Vault::decode($token) ?? '';
        $half = intdiv(strlen($bytes), 2);

        return substr($bytes, 0, $half) ^ substr($bytes, $half);
    }

    private function isExcepted(string $path): bool
    {
        foreach ($this->except as $except) {
            if ($path === $except || (str_ends_with($except, '/*') && str_starts_with($path, substr($except, 0, -1)) && !str_contains($path, '..'))) {
                return true;
            }
        }

        return false;
    }
}
