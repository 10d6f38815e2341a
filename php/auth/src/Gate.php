<?php

declare(strict_types=1);

namespace Surus\Auth;

use Surus\Http\HttpException;
use Surus\Http\Request;

/** Who may do what. What is not declared nobody may. */
final class Gate
{
    /** @var array<string, \Closure> */
    private array $abilities = [];

    /** @param \Closure(mixed, mixed...): bool $rule from the user and what it is about */
    public function define(string $ability, \Closure $rule): static
    {
        $this->abilities[$ability] = $rule;

        return $this;
    }

    /** Whether the request's user may. Nobody who is not known may do anything. */
    public function allows(Request $request, string $ability, mixed ...$about): bool
    {
        $rule = $this->abilities[$ability] ?? throw new \LogicException("There is no ability \"$ability\"");
        $user = User::of($request);

        return $user !== null && $rule($user, ...$about) === true;
    }

    /** @throws HttpException 401 for nobody, 403 for who may not */
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
