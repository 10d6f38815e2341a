<?php

declare(strict_types=1);

namespace Surus\Auth;

use Surus\Http\HttpException;
use Surus\Http\Middleware;
use Surus\Http\Request;
use Surus\Http\Response;
use Surus\Schema\RequiresUser;

/** Refuses requests without a user: browsers are redirected to the login page, other clients get 401. */
final class RequireUser implements Middleware, RequiresUser
{
    /** @param string|null $login path of the login page, which gets the path to return to as query parameter `back` */
    public function __construct(private readonly ?string $login = null)
    {
    }

    public function handle(Request $request, \Closure $next): Response
    {
        if (User::of($request) !== null) {
            return $next($request)->withListItem('cache-control', 'private');
        }
        $reads = in_array($request->method(), ['GET', 'HEAD'], true) && $request->prefers('application/json', 'text/html') === 'text/html';
        if ($this->login === null || !$reads) {
            throw new HttpException(401);
        }

        return Response::redirect($this->login . '?' . http_build_query(['back' => $request->uri()]));
    }
}
