<?php

declare(strict_types=1);

namespace Surus\Auth;

use Surus\Security\Vault;

use function Surus\Internal\signature;
use function Surus\Internal\verifies;

/** A key for one algorithm. */
final class Key
{
    /**
     * @param string $first a secret; for a public key its modulus or its first coordinate, in big-endian bytes
     * @param string $second its exponent or its second coordinate
     * @param ?string $private the key for signing: the secret, or a private key in PKCS #8
     */
    private function __construct(
        public readonly string $algorithm,
        public readonly ?string $id,
        #[\SensitiveParameter] private readonly string $first,
        private readonly string $second = '',
        #[\SensitiveParameter] private readonly ?string $private = null,
    ) {
    }

    /** HS256: everyone who can verify can also sign. At least 32 bytes. */
    public static function secret(#[\SensitiveParameter] string $secret, ?string $id = null): self
    {
        if (strlen($secret) < 32) {
            throw new \InvalidArgumentException('A secret for HS256 has at least 32 bytes');
        }

        return new self('HS256', $id, $secret, '', $secret);
    }

    /** RS256 or ES256, from a public key in PEM. */
    public static function pem(string $pem, ?string $id = null): self
    {
        $key = openssl_pkey_get_public($pem);

        return $key === false ? throw new \InvalidArgumentException('This is no public key in PEM') : self::of($key, $id);
    }

    /** RS256 or ES256, from a private key in PEM: it signs, too. */
    public static function private(#[\SensitiveParameter] string $pem, ?string $id = null, #[\SensitiveParameter] ?string $passphrase = null): self
    {
        $key = openssl_pkey_get_private($pem, $passphrase);
        if ($key === false || !openssl_pkey_export($key, $text)) {
            throw new \InvalidArgumentException('This is no private key in PEM, or its passphrase is another one');
        }
        $body = preg_replace('/-----[A-Z ]+-----|\s/', '', $text);

        return self::of($key, $id, (string) base64_decode((string) $body, true));
    }

    private static function of(\OpenSSLAsymmetricKey $key, ?string $id, #[\SensitiveParameter] ?string $private = null): self
    {
        $details = openssl_pkey_get_details($key) ?: ['type' => -1];

        return match (true) {
            $details['type'] === OPENSSL_KEYTYPE_RSA && $details['bits'] >= 2048
                => new self('RS256', $id, $details['rsa']['n'], $details['rsa']['e'], $private),
            $details['type'] === OPENSSL_KEYTYPE_EC && $details['ec']['curve_name'] === 'prime256v1'
                => new self('ES256', $id, $details['ec']['x'], $details['ec']['y'], $private),
            default => throw new \InvalidArgumentException('The key is neither RSA from 2048 bits on nor P-256'),
        };
    }

    /**
     * From a JSON Web Key: RSA, P-256 or Ed25519, for signatures; null for any other. Secrets are not taken from documents.
     *
     * @param array<string, mixed> $key
     */
    public static function jwk(array $key): ?self
    {
        $part = static fn (string $name): string => is_string($key[$name] ?? null) ? (Vault::decode($key[$name]) ?? '') : '';
        $id = is_string($key['kid'] ?? null) ? $key['kid'] : null;
        if (($key['use'] ?? 'sig') !== 'sig') {
            return null;
        }
        $found = match ([$key['kty'] ?? '', $key['crv'] ?? '']) {
            // 2048 bits: the first byte is at least 128.
            ['RSA', ''] => strlen(ltrim($part('n'), "\0")) >= 256 && $part('e') !== '' ? new self('RS256', $id, $part('n'), $part('e')) : null,
            ['EC', 'P-256'] => strlen($part('x')) === 32 && strlen($part('y')) === 32 ? new self('ES256', $id, $part('x'), $part('y')) : null,
            ['OKP', 'Ed25519'] => strlen($part('x')) === 32 ? new self('EdDSA', $id, $part('x')) : null,
            default => null,
        };

        return ($key['alg'] ?? $found?->algorithm) === $found?->algorithm ? $found : null;
    }

    /** Whether it can sign: a secret, or a private key. */
    public function signs(): bool
    {
        return $this->private !== null;
    }

    /** @internal */
    public function verifies(string $text, string $signature): bool
    {
        return verifies($this->algorithm, $this->first, $this->second, $text, $signature);
    }

    /** @internal */
    public function sign(string $text): string
    {
        return signature($this->algorithm, $this->private ?? '', $text)
            ?? throw new \LogicException("This key cannot sign: $this->algorithm wants a secret or a private key");
    }
}
