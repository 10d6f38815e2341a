<?php

declare(strict_types=1);

namespace Surus\Auth;

use Surus\Http\HttpException;
use Surus\Http\Middleware;
use Surus\Http\Request;
use Surus\Http\Response;
use Surus\Schema\SecurityScheme;

/** Name and password with each request (RFC 7617). Use it only over HTTPS and with a rate limit. */
final class BasicAuth implements Middleware, SecurityScheme
{
    /**
     * @param \Closure(string, string): mixed $verify the user with this name and password, or null; password_verify()
     *     is slow on purpose
     */
    public function __construct(private readonly \Closure $verify, private readonly string $realm = 'Restricted')
    {
        if (preg_match('/^[\x20\x21\x23-\x5b\x5d-\x7e]*$/D', $realm) !== 1) {
            throw new \InvalidArgumentException('The realm has characters that a header cannot have');
        }
    }

    public function schemeName(): string
    {
        return 'basic';
    }

    public function securityScheme(): array
    {
        return ['type' => 'http', 'scheme' => 'basic'];
    }

    public function isOptional(): bool
    {
        return false;
    }

    public function handle(Request $request, \Closure $next): Response
    {
        $header = (string) $request->header('authorization', '');
        if (preg_match('~^Basic +([A-Za-z0-9+/]+=*)$~Di', $header, $match) === 1) {
            [$name, $password] = explode(':', (string) base64_decode($match[1], true), 2) + [1 => null];
            $user = $password === null ? null : ($this->verify)($name, $password);
            if ($user !== null && $user !== false) {
                User::set($request, $user);

                return $next($request);
            }
        }
        throw new HttpException(401, '', ['www-authenticate' => "Basic realm=\"$this->realm\", charset=\"UTF-8\""]);
    }
}
