<?php

declare(strict_types=1);

namespace Surus\Auth;

use Surus\Http\HttpException;
use Surus\Http\Middleware;
use Surus\Http\Request;
use Surus\Http\Response;
use Surus\Schema\SecurityScheme;

/** A token in the header Authorization (RFC 6750). A token in the URL is ignored: URLs are logged. */
final class BearerAuth implements Middleware, SecurityScheme
{
    /**
     * @param \Closure(string): mixed $verify the user of this token, or null: {@see Jwt::verify()}, or a look-up by the token's hash
     * @param bool $optional requests without a token are allowed, without a user; those with a wrong token are refused
     */
    public function __construct(private readonly \Closure $verify, private readonly bool $optional = false)
    {
    }

    public function schemeName(): string
    {
        return 'bearer';
    }

    public function securityScheme(): array
    {
        return ['type' => 'http', 'scheme' => 'bearer'];
    }

    public function isOptional(): bool
    {
        return $this->optional;
    }

    public function handle(Request $request, \Closure $next): Response
    {
        $token = $request->bearer();
        if ($token === null && $this->optional) {
            return $next($request);
        }
        if ($token === null) {
            throw new HttpException(401, '', ['www-authenticate' => 'Bearer']);
        }
        $user = ($this->verify)($token);
        if ($user === null || $user === false) {
            throw new HttpException(401, '', ['www-authenticate' => 'Bearer error="invalid_token"']);
        }
        User::set($request, $user);

        return $next($request);
    }
}
