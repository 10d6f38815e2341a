<?php

declare(strict_types=1);

namespace Surus\Tests\Routing;

use PHPUnit\Framework\TestCase;
use Surus\Routing\Pattern;

final class PatternTest extends TestCase
{
    public function testParametersAndTemplate(): void
    {
        $pattern = new Pattern('/users/{id:int}/{tag:[a-z]{2,3}}/{rest*}');
        self::assertSame(['id', 'tag', 'rest'], array_keys($pattern->parameters));
        self::assertSame('[a-z]{2,3}', $pattern->parameters['tag']['constraint']);
        self::assertTrue($pattern->parameters['rest']['rest']);
        self::assertSame('/users/{id}/{tag}/{rest}', $pattern->template());
        self::assertSame((new Pattern('/users/{a:int}/{b:[a-z]{2,3}}/{c*}'))->shape(), $pattern->shape());
    }

    public function testWhatMayBeLeftOut(): void
    {
        $pattern = new Pattern('/blog/{year?:int}');
        self::assertSame('/blog', (string) $pattern->shorter());
        self::assertSame('/', (string) (new Pattern('/{page?}'))->shorter());
        self::assertNull((new Pattern('/blog/{year:int}'))->shorter());
        self::assertNull((new Pattern('/blog'))->shorter());
    }

    /** @return list<array{string, array<string, string>, string}> */
    public function filled(): array
    {
        return [
            ['/users/{id:int}', ['id' => '5'], '/users/5'],
            ['/files/{path*}', ['path' => 'a b/c?d'], '/files/a%20b/c%3Fd'],
            ['/tags/{tag}', ['tag' => 'a/b'], '/tags/a%2Fb'],
            ['/blog/{year?:int}', [], '/blog'],
            ['/{page?}', [], '/'],
        ];
    }

    /**
     * @dataProvider filled
     *
     * @param array<string, string> $values
     */
    public function testAPathIsMade(string $pattern, array $values, string $path): void
    {
        self::assertSame($path, (new Pattern($pattern))->fill($values));
        self::assertSame([], $values);
    }

    public function testAValueThatDoesNotFitIsNamed(): void
    {
        foreach (['x' => '"x" is no value for "id"', "5\n" => 'is no value for "id"', '' => 'needs a value for "id"'] as $value => $message) {
            $values = ['id' => $value];
            try {
                (new Pattern('/users/{id:int}'))->fill($values);
                self::fail($message);
            } catch (\InvalidArgumentException $error) {
                self::assertStringContainsString($message, $error->getMessage());
            }
        }
    }

    public function testAnotherConstraint(): void
    {
        $pattern = new Pattern('/{a}/{b:int}');
        self::assertSame('/{a:slug}/{b:int}', (string) $pattern->constrained('a', 'slug'));
        self::assertNull($pattern->constrained('c', 'int'));
    }
}
