<?php

declare(strict_types=1);

namespace Surus\Auth;

use Surus\Http\HttpException;
use Surus\Http\Request;

/** The user of a request: any value that the application's functions have returned. */
final class User
{
    /** The user; null if there is none. */
    public static function of(Request $request): mixed
    {
        return $request->attribute(self::class);
    }

    /** @throws HttpException 401 if there is no user */
    public static function required(Request $request): mixed
    {
        return self::of($request) ?? throw new HttpException(401);
    }

    /** @internal for middleware */
    public static function set(Request $request, mixed $user): void
    {
        $request->setAttribute(self::class, $user);
    }
}
