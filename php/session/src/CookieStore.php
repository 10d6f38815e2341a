<?php

declare(strict_types=1);

namespace Surus\Session;

use Surus\Security\Vault;

/**
 * The session itself is in the cookie, encrypted: the server need not store it, and cannot end it early. Up to about
 * 2.5 KB.
 */
final class CookieStore
{
    /** @param Vault $vault encrypts the contents of the cookie */
    public function __construct(private readonly Vault $vault)
    {
    }

    /** The data in a cookie; null if it was not made here, or is too old. */
    public function open(string $value): ?string
    {
        $data = $this->vault->decrypt($value, 'session');
        $until = $data === null ? false : unpack('J', $data . "\0\0\0\0\0\0\0\0");

        return $data !== null && $until !== false && $until[1] >= time() ? substr($data, 8) : null;
    }

    /** @throws \LengthException if it is too large for a cookie */
    public function seal(string $data, int $seconds): string
    {
        $value = $this->vault->encrypt(pack('J', time() + $seconds) . $data, 'session');
        if (strlen($value) > 3800) {
            throw new \LengthException('The session is too large for a cookie: use another store');
        }

        return $value;
    }
}
