<?php

declare(strict_types=1);

namespace Surus\Auth;

use Surus\Http\HttpException;
use Surus\Http\Request;

/** Permissions of users: only declared abilities exist, and without a user everything is forbidden. */
final class Gate
{
    /** @var array<string, \Closure> */
    private array $abilities = [];

    /** @param \Closure(mixed, mixed...): bool $rule gets the user and the objects of the action */
    public function define(string $ability, \Closure $rule): static
    {
        $this->abilities[$ability] = $rule;

        return $this;
    }

    /** Whether the request's user has this permission; false without a user. */
    public function allows(Request $request, string $ability, mixed ...$about): bool
    {
        $rule = $this->abilities[$ability] ?? throw new \LogicException("There is no ability \"$ability\"");
        $user = User::of($request);

        return $user !== null && $rule($user, ...$about) === true;
    }

    /** @throws HttpException 401 without a user, 403 without the permission */
    public function authorize(Request $request, string $ability, mixed ...$about): void
    {
        if (!$this->allows($request, $ability, ...$about)) {
            throw new HttpException(User::of($request) === null ? 401 : 403);
        }
    }

    /**
     * The same as a middleware.
     *
     * @return \Closure(Request, \Closure): mixed
     */
    public function can(string $ability): \Closure
    {
        return function (Request $request, \Closure $next) use ($ability): mixed {
            $this->authorize($request, $ability);

            return $next($request);
        };
    }
}
