<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * PHP source by its tokens.
 *
 * @internal
 */
final class Tokens
{
    /** By how much a token changes the depth of braces; braces inside a string do not count. */
    public static function depth(\PhpToken $token): int
    {
        return match ($token->id) {
            ord('{'), T_CURLY_OPEN, T_DOLLAR_OPEN_CURLY_BRACES => 1,
            ord('}') => -1,
            default => 0,
        };
    }
}
