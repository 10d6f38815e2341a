<?php

declare(strict_types=1);

namespace Surus\Auth;

/**
 * As much of ASN.1's DER as public keys (RFC 5280) and ECDSA signatures (RFC 3279) need.
 *
 * @internal
 */
final class Der
{
    private const RSA = "\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";
    private const P256 = "\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";

    /** A public key, of two numbers in bytes, the highest first. */
    public static function rsa(string $modulus, string $exponent): string
    {
        return self::key(self::RSA, self::wrap("\x30", self::integer($modulus) . self::integer($exponent)));
    }

    /** A public key, of a point's coordinates in bytes, the highest first. */
    public static function p256(string $x, string $y): string
    {
        $point = "\x04" . str_pad($x, 32, "\0", STR_PAD_LEFT) . str_pad($y, 32, "\0", STR_PAD_LEFT);

        return self::key(self::P256, $point);
    }

    /** From two numbers of 32 bytes. */
    public static function signature(string $raw): string
    {
        return self::wrap("\x30", self::integer(substr($raw, 0, 32)) . self::integer(substr($raw, 32)));
    }

    private static function key(string $algorithm, string $bits): string
    {
        return self::wrap("\x30", self::wrap("\x30", $algorithm) . self::wrap("\x03", "\0" . $bits));
    }

    private static function integer(string $bytes): string
    {
        $bytes = ltrim($bytes, "\0");
        // The first bit is the sign.
        if ($bytes === '' || ord($bytes[0]) > 0x7f) {
            $bytes = "\0" . $bytes;
        }

        return self::wrap("\x02", $bytes);
    }

    private static function wrap(string $tag, string $content): string
    {
        $length = strlen($content);
        if ($length < 0x80) {
            return $tag . chr($length) . $content;
        }
        $size = ltrim(pack('N', $length), "\0");

        return $tag . chr(0x80 | strlen($size)) . $size . $content;
    }
}
