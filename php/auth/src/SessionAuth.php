<?php

declare(strict_types=1);

namespace Surus\Auth;

use Surus\Http\Middleware;
use Surus\Http\Request;
use Surus\Http\Response;
use Surus\Middleware\Sessions;
use Surus\Schema\UserOfSession;

/** The logged-in user, stored in the session: inside {@see Sessions}. {@see RequireUser} makes a user required. */
final class SessionAuth implements Middleware, UserOfSession
{
    private const KEY = '_user';

    /** @param \Closure(string|int): mixed $find the user with this id, or null if the user no longer exists */
    public function __construct(private readonly \Closure $find)
    {
    }

    /** To be called after the password was verified. The session gets another id, which prevents session fixation. */
    public static function login(Request $request, string|int $id, mixed $user): void
    {
        $session = Sessions::of($request);
        $session->regenerate(anew: true);
        $session->set(self::KEY, $id);
        User::set($request, $user);
    }

    /** Ends the session, on the server and in the browser. */
    public static function logout(Request $request): void
    {
        Sessions::of($request)->destroy();
        User::set($request, null);
    }

    public function handle(Request $request, \Closure $next): Response
    {
        $session = Sessions::of($request);
        $id = $session->get(self::KEY);
        if (is_string($id) || is_int($id)) {
            $user = ($this->find)($id);
            if ($user === null) {
                $session->destroy();
            }
            User::set($request, $user);
        }

        return $next($request);
    }
}
