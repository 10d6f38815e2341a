<?php

declare(strict_types=1);

namespace Surus\Security;

use Surus\Http\Cookie;
use Surus\Http\Request;

/**
 * Signs and encrypts text with secret keys, for cookies and links.
 *
 * The first key is used, the others are still accepted, so that keys can be changed. A text that was made for one
 * purpose is invalid for another one.
 */
final class Vault
{
    /** @var non-empty-list<string> 32 bytes each */
    private readonly array $keys;

    /** @var non-empty-list<string> keys for encryption, different from those for signatures */
    private readonly array $encryption;

    /**
     * @param string ...$secrets at least 16 bytes each, from a random source: `surus new` writes one
     *
     * @throws \InvalidArgumentException for a secret that is too short
     */
    public function __construct(#[\SensitiveParameter] string $secret, #[\SensitiveParameter] string ...$secrets)
    {
        $keys = [];
        foreach ([$secret, ...array_values($secrets)] as $one) {
            if (strlen($one) < 16) {
                throw new \InvalidArgumentException('A secret has at least 16 random bytes');
            }
            $keys[] = hash('sha256', "surus vault\0" . $one, true);
        }
        $this->keys = $keys;
        $this->encryption = array_map(static fn (string $key): string => hash_hmac('sha256', 'encryption', $key, true), $keys);
    }

    /** The text with a signature; the text itself is readable. */
    public function sign(string $text, string $purpose): string
    {
        return self::encode($text) . '.' . self::encode($this->mac($this->keys[0], $text, $purpose));
    }

    /** The text if it was signed with one of the keys for this purpose, otherwise null. */
    public function verify(string $signed, string $purpose): ?string
    {
        [$text, $mac] = array_map(self::decode(...), explode('.', $signed, 2) + [1 => '']);
        if ($text === null || $mac === null) {
            return null;
        }
        foreach ($this->keys as $key) {
            if (hash_equals($this->mac($key, $text, $purpose), $mac)) {
                return $text;
            }
        }

        return null;
    }

    /** The encrypted text (XChaCha20-Poly1305). */
    public function encrypt(#[\SensitiveParameter] string $text, string $purpose): string
    {
        $nonce = random_bytes(SODIUM_CRYPTO_AEAD_XCHACHA20POLY1305_IETF_NPUBBYTES);

        return self::encode($nonce . sodium_crypto_aead_xchacha20poly1305_ietf_encrypt($text, $purpose, $nonce, $this->encryption[0]));
    }

    /** The text if it was encrypted with one of the keys for this purpose and is unchanged, otherwise null. */
    public function decrypt(string $encrypted, string $purpose): ?string
    {
        $bytes = self::decode($encrypted);
        $size = SODIUM_CRYPTO_AEAD_XCHACHA20POLY1305_IETF_NPUBBYTES;
        if ($bytes === null || strlen($bytes) < $size) {
            return null;
        }
        foreach ($this->encryption as $key) {
            $text = sodium_crypto_aead_xchacha20poly1305_ietf_decrypt(substr($bytes, $size), $purpose, substr($bytes, 0, $size), $key);
            if ($text !== false) {
                return $text;
            }
        }

        return null;
    }

    /** The cookie with its value signed. */
    public function signed(Cookie $cookie): Cookie
    {
        return self::with($cookie, $this->sign($cookie->value, "cookie $cookie->name"));
    }

    /** The cookie with its value encrypted. */
    public function encrypted(Cookie $cookie): Cookie
    {
        return self::with($cookie, $this->encrypt($cookie->value, "cookie $cookie->name"));
    }

    /** The value of a signed cookie; null if there is none with a valid signature. */
    public function signedCookie(Request $request, string $name): ?string
    {
        return $this->verify($request->cookie($name) ?? '', "cookie $name");
    }

    /** The value of an encrypted cookie; null if there is none that can be decrypted. */
    public function encryptedCookie(Request $request, string $name): ?string
    {
        return $this->decrypt($request->cookie($name) ?? '', "cookie $name");
    }

    /** URL-safe base64 without padding. */
    public static function encode(string $bytes): string
    {
        return sodium_bin2base64($bytes, SODIUM_BASE64_VARIANT_URLSAFE_NO_PADDING);
    }

    /** Null if the text is not a result of encode(). */
    public static function decode(string $text): ?string
    {
        try {
            return sodium_base642bin($text, SODIUM_BASE64_VARIANT_URLSAFE_NO_PADDING);
        } catch (\SodiumException) {
            return null;
        }
    }

    private function mac(string $key, string $text, string $purpose): string
    {
        return hash_hmac('sha256', strlen($purpose) . ':' . $purpose . $text, $key, true);
    }

    private static function with(Cookie $cookie, string $value): Cookie
    {
        return new Cookie($cookie->name, $value, $cookie->maxAge, $cookie->path, $cookie->domain, $cookie->secure, $cookie->httpOnly, $cookie->sameSite);
    }
}
