<?php

declare(strict_types=1);

namespace Surus\Auth;

use Surus\Security\Vault;

/** A key for one algorithm. */
final class Key
{
    private function __construct(
        public readonly string $algorithm,
        public readonly ?string $id,
        #[\SensitiveParameter] private readonly string|\OpenSSLAsymmetricKey $material,
    ) {
    }

    /** HS256: who can verify can sign. At least 32 bytes. */
    public static function secret(#[\SensitiveParameter] string $secret, ?string $id = null): self
    {
        if (strlen($secret) < 32) {
            throw new \InvalidArgumentException('A secret for HS256 has at least 32 bytes');
        }

        return new self('HS256', $id, $secret);
    }

    /** RS256 or ES256, from a public key in PEM. */
    public static function pem(string $pem, ?string $id = null): self
    {
        $key = openssl_pkey_get_public($pem);
        $details = $key === false ? false : openssl_pkey_get_details($key);
        if ($key === false || $details === false) {
            throw new \InvalidArgumentException('This is no public key in PEM');
        }
        $algorithm = match (true) {
            $details['type'] === OPENSSL_KEYTYPE_RSA && $details['bits'] >= 2048 => 'RS256',
            $details['type'] === OPENSSL_KEYTYPE_EC && $details['ec']['curve_name'] === 'prime256v1' => 'ES256',
            default => throw new \InvalidArgumentException('The key is neither RSA from 2048 bits on nor P-256'),
        };

        return new self($algorithm, $id, $key);
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
        [$kind, $algorithm] = match ([$key['kty'] ?? '', $key['crv'] ?? '']) {
            ['RSA', ''] => ['RSA', 'RS256'],
            ['EC', 'P-256'] => ['EC', 'ES256'],
            ['OKP', 'Ed25519'] => ['OKP', 'EdDSA'],
            default => ['', ''],
        };
        if ($kind === '' || ($key['alg'] ?? $algorithm) !== $algorithm) {
            return null;
        }
        if ($kind === 'OKP') {
            return strlen($part('x')) === SODIUM_CRYPTO_SIGN_PUBLICKEYBYTES ? new self('EdDSA', $id, $part('x')) : null;
        }
        $der = $kind === 'RSA' ? Der::rsa($part('n'), $part('e')) : Der::p256($part('x'), $part('y'));
        try {
            return self::pem("-----BEGIN PUBLIC KEY-----\n" . chunk_split(base64_encode($der), 64, "\n") . "-----END PUBLIC KEY-----\n", $id);
        } catch (\InvalidArgumentException) {
            return null;
        }
    }

    /** @internal */
    public function verifies(string $text, string $signature): bool
    {
        if (is_string($this->material)) {
            return $this->algorithm === 'HS256'
                ? hash_equals(hash_hmac('sha256', $text, $this->material, true), $signature)
                : strlen($signature) === SODIUM_CRYPTO_SIGN_BYTES && sodium_crypto_sign_verify_detached($signature, $text, $this->material);
        }
        if ($this->algorithm === 'ES256') {
            if (strlen($signature) !== 64) {
                return false;
            }
            $signature = Der::signature($signature);
        }

        return openssl_verify($text, $signature, $this->material, OPENSSL_ALGO_SHA256) === 1;
    }
}
