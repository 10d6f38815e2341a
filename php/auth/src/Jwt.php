<?php

declare(strict_types=1);

namespace Surus\Auth;

use Surus\Security\Vault;

/**
 * Issues and verifies signed JSON Web Tokens (RFC 7519). The algorithm is determined by the key, never by the token:
 * "none", and a public key used as a secret, are refused.
 */
final class Jwt
{
    private const JSON = JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION;

    /**
     * @param Keys $keys
     * @param string $issuer the required value of `iss`
     * @param string $audience the required value, or item, of `aud`
     * @param int $leeway seconds by which clocks may differ
     */
    public function __construct(
        private readonly Keys $keys,
        private readonly string $issuer,
        private readonly string $audience,
        private readonly int $leeway = 30,
    ) {
    }

    /**
     * A token with these claims, and `iss`, `aud`, `iat` and `exp`; signed by the first key that can sign.
     *
     * @param array<string, mixed> $claims `sub` is the user; everybody who has the token can read them
     * @param int $seconds for which it is valid
     */
    public function issue(array $claims, int $seconds = 3600): string
    {
        $key = $this->keys->signing() ?? throw new \LogicException('None of the keys can sign: Key::secret() and Key::private() can');
        $now = time();
        $claims = ['iss' => $this->issuer, 'aud' => $this->audience, 'iat' => $now, 'exp' => $now + $seconds] + $claims;
        $header = ['typ' => 'JWT', 'alg' => $key->algorithm] + ($key->id === null ? [] : ['kid' => $key->id]);
        $text = implode('.', array_map(static fn (array $part): string => Vault::encode(json_encode($part, self::JSON)), [$header, $claims]));

        return $text . '.' . Vault::encode($key->sign($text));
    }

    /** @return array<string, mixed>|null the claims; null if the token is not valid */
    public function verify(#[\SensitiveParameter] string $token): ?array
    {
        $parts = explode('.', $token);
        if (count($parts) !== 3 || strlen($token) > 16_384) {
            return null;
        }
        $header = self::json($parts[0]);
        $signature = Vault::decode($parts[2]);
        // `crit`: extensions that must be understood are not supported.
        if ($header === null || $signature === null || isset($header['crit']) || !is_string($header['alg'] ?? null)) {
            return null;
        }
        $id = $header['kid'] ?? null;
        foreach ($this->keys->find($header['alg'], is_string($id) ? $id : null) as $key) {
            if ($key->verifies("$parts[0].$parts[1]", $signature)) {
                $claims = self::json($parts[1]);

                return $claims !== null && $this->holds($claims) ? $claims : null;
            }
        }

        return null;
    }

    /** @param array<string, mixed> $claims */
    private function holds(array $claims): bool
    {
        $now = time();
        $until = $claims['exp'] ?? null;
        $from = $claims['nbf'] ?? 0;

        return (is_int($until) || is_float($until)) && $until > $now - $this->leeway
            && (is_int($from) || is_float($from)) && $from <= $now + $this->leeway
            && ($claims['iss'] ?? null) === $this->issuer
            && in_array($this->audience, (array) ($claims['aud'] ?? []), true);
    }

    /** @return array<string, mixed>|null */
    private static function json(string $part): ?array
    {
        $value = json_decode(Vault::decode($part) ?? '', true, 16);

        return is_array($value) ? $value : null;
    }
}
