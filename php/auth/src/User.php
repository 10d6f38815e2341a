<?php

declare(strict_types=1);

namespace Surus\Auth;

use Surus\Http\HttpException;
use Surus\Http\Request;

/** Who has sent a request: whatever the application's own functions have returned. */
final class User
{
    /** Null if nobody is known. */
    public static function of(Request $request): mixed
    {
        return $request->attribute(self::class);
    }

    /** @throws HttpException 401 if nobody is known */
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
