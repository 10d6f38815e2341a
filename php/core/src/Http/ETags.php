<?php

declare(strict_types=1);

namespace Surus\Http;

/** @internal */
final class ETags
{
    /** Whether a list of entity tags, or "*", has this one; weak comparison (RFC 9110, 8.8.3.2). */
    public static function matches(string $list, string $etag): bool
    {
        if (trim($list) === '*') {
            return true;
        }
        preg_match_all('~(?:W/)?("[^"]*")~', $list, $found);

        return in_array((string) preg_replace('~^W/~', '', $etag), $found[1], true);
    }
}
