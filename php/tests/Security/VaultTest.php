<?php

declare(strict_types=1);

namespace Surus\Tests\Security;

use PHPUnit\Framework\TestCase;
use Surus\Http\Cookie;
use Surus\Security\Vault;

final class VaultTest extends TestCase
{
    private const SECRET = 'a secret of more than 16 bytes';

    public function testWhatIsSignedCanBeReadAndNotChanged(): void
    {
        $vault = new Vault(self::SECRET);
        foreach (['', 'text', "\0\xff binary", str_repeat('long ', 1000)] as $text) {
            $signed = $vault->sign($text, 'link');
            self::assertSame($text, $vault->verify($signed, 'link'));
            self::assertNull($vault->verify($signed, 'another purpose'));
            self::assertNull($vault->verify('x' . $signed, 'link'));
            self::assertNull($vault->verify(substr($signed, 0, -1), 'link'));
        }
        foreach (['', '.', 'a.b', '....', "\0"] as $nothing) {
            self::assertNull($vault->verify($nothing, 'link'));
        }
    }

    public function testWhatIsEncryptedCannotBeRead(): void
    {
        $vault = new Vault(self::SECRET);
        $encrypted = $vault->encrypt('the text', 'cookie');
        self::assertStringNotContainsString('the text', (string) Vault::decode($encrypted));
        self::assertNotSame($encrypted, $vault->encrypt('the text', 'cookie'));
        self::assertSame('the text', $vault->decrypt($encrypted, 'cookie'));
        self::assertNull($vault->decrypt($encrypted, 'another purpose'));
        for ($i = 0; $i < strlen($encrypted); $i += 7) {
            $changed = $encrypted;
            $changed[$i] = $changed[$i] === 'A' ? 'B' : 'A';
            self::assertNull($vault->decrypt($changed, 'cookie'), "byte $i");
        }
    }

    public function testOldKeysAreAcceptedAndNotUsed(): void
    {
        $old = new Vault('the secret of last year');
        $new = new Vault(self::SECRET, 'the secret of last year');
        self::assertSame('text', $new->verify($old->sign('text', 'p'), 'p'));
        self::assertSame('text', $new->decrypt($old->encrypt('text', 'p'), 'p'));
        self::assertNull($old->verify($new->sign('text', 'p'), 'p'));
        self::assertNull($old->decrypt($new->encrypt('text', 'p'), 'p'));
    }

    public function testASecretIsLongEnough(): void
    {
        $this->expectException(\InvalidArgumentException::class);
        new Vault('short');
    }

    public function testACookieKeepsItsAttributes(): void
    {
        $vault = new Vault(self::SECRET);
        $cookie = new Cookie('theme', 'dark', 60, '/shop', 'example.org', true, false, 'Strict');
        foreach ([$vault->signed($cookie), $vault->encrypted($cookie)] as $other) {
            self::assertNotSame('dark', $other->value);
            $attributes = static fn (Cookie $of): array => array_diff_key(get_object_vars($of), ['value' => 1]);
            self::assertSame($attributes($cookie), $attributes($other));
        }
    }
}
