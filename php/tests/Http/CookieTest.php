<?php

declare(strict_types=1);

namespace Surus\Tests\Http;

use PHPUnit\Framework\TestCase;
use Surus\Http\Cookie;

final class CookieTest extends TestCase
{
    public function testTheHeader(): void
    {
        self::assertSame('a=b%3B%20c; Path=/; HttpOnly; SameSite=Lax', (string) new Cookie('a', 'b; c'));
        self::assertSame('__Host-a=1; Path=/; Secure; HttpOnly; SameSite=Lax', (string) new Cookie('__Host-a', '1'));
        $gone = (string) new Cookie('a', '', 0, '/x', 'example.org', httpOnly: false);
        self::assertSame('a=; Path=/x; Domain=example.org; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; SameSite=Lax', $gone);
    }

    /** @return array<string, array{\Closure(): Cookie}> */
    public function wrong(): array
    {
        return [
            'no name' => [static fn () => new Cookie('', '1')],
            'a name that ends the cookie' => [static fn () => new Cookie("a;b\r\n", '1')],
            'a path that adds a header' => [static fn () => new Cookie('a', '1', path: "/\r\nx: y")],
            'a domain that adds an attribute' => [static fn () => new Cookie('a', '1', domain: 'a;Secure')],
            'another SameSite' => [static fn () => new Cookie('a', '1', sameSite: 'Any')],
            'None without Secure' => [static fn () => new Cookie('a', '1', sameSite: 'None')],
            '__Host- with a path' => [static fn () => new Cookie('__Host-a', '1', path: '/x')],
            '__Host- with a domain' => [static fn () => new Cookie('__Host-a', '1', domain: 'example.org')],
        ];
    }

    /** @dataProvider wrong */
    public function testWhatNoBrowserKeepsIsRefused(\Closure $make): void
    {
        $this->expectException(\InvalidArgumentException::class);
        $make();
    }
}
