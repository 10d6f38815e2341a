<?php

declare(strict_types=1);

namespace Surus\Tests\Auth;

use PHPUnit\Framework\TestCase;
use Surus\Auth\Jwt;
use Surus\Auth\Key;
use Surus\Auth\Keys;
use Surus\Security\Vault;

final class JwtTest extends TestCase
{
    private const SECRET = 'a secret of more than thirty-two bytes';

    private static function jwt(string $issuer = 'here', string $audience = 'api', string $secret = self::SECRET): Jwt
    {
        return new Jwt(Keys::of(Key::secret($secret, 'one')), $issuer, $audience);
    }

    public function testWhatIsIssuedIsVerified(): void
    {
        $token = self::jwt()->issue(['sub' => 'ann', 'amount' => 1.0], 60);
        $claims = self::jwt()->verify($token);
        self::assertSame('ann', $claims['sub'] ?? null);
        self::assertSame(1.0, $claims['amount'] ?? null);
        self::assertSame(60, ($claims['exp'] ?? 0) - ($claims['iat'] ?? 0));
        self::assertNull(self::jwt(issuer: 'elsewhere')->verify($token));
        self::assertNull(self::jwt(audience: 'another')->verify($token));
        self::assertNull(self::jwt(secret: strrev(self::SECRET))->verify($token));
    }

    public function testAnOldOneIsNothing(): void
    {
        self::assertNotNull(self::jwt()->verify(self::jwt()->issue([], -20)), 'clocks may differ by 30 s');
        self::assertNull(self::jwt()->verify(self::jwt()->issue([], -40)));
        self::assertNull(self::jwt()->verify(self::jwt()->issue(['nbf' => time() + 60])));
    }

    public function testWhatATokenSaysOfItselfDoesNotCount(): void
    {
        [, $claims, $signature] = explode('.', self::jwt()->issue(['sub' => 'ann']));
        $head = static fn (array $head): string => Vault::encode(json_encode($head, JSON_THROW_ON_ERROR));
        foreach ([['alg' => 'none'], ['alg' => 'HS512'], ['alg' => 'HS256', 'crit' => ['x']], ['alg' => ['HS256']], []] as $wrong) {
            foreach ([$signature, ''] as $with) {
                self::assertNull(self::jwt()->verify($head($wrong) . ".$claims.$with"));
            }
        }
        foreach (['', '.', '..', 'a.b.c', str_repeat('x', 20_000)] as $nothing) {
            self::assertNull(self::jwt()->verify($nothing));
        }
    }

    public function testAPublicKeySignsNothing(): void
    {
        $key = openssl_pkey_new(['private_key_type' => OPENSSL_KEYTYPE_EC, 'curve_name' => 'prime256v1']);
        self::assertNotFalse($key);
        openssl_pkey_export($key, $private);
        $public = openssl_pkey_get_details($key)['key'] ?? '';
        $signs = new Jwt(Keys::of(Key::private($private)), 'here', 'api');
        $verifies = new Jwt(Keys::of(Key::pem($public)), 'here', 'api');
        self::assertSame('ann', $verifies->verify($signs->issue(['sub' => 'ann']))['sub'] ?? null);
        // A public key is not taken for a secret.
        $forged = new Jwt(Keys::of(Key::secret($public)), 'here', 'api');
        self::assertNull($verifies->verify($forged->issue(['sub' => 'eve'])));
        $this->expectExceptionMessage('None of the keys can sign');
        $verifies->issue([]);
    }

    public function testKeysThatAreTooShort(): void
    {
        $this->expectExceptionMessage('at least 32 bytes');
        Key::secret(str_repeat('x', 31));
    }
}
