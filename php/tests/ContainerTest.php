<?php

declare(strict_types=1);

namespace Surus\Tests;

use PHPUnit\Framework\TestCase;
use Psr\Container\ContainerInterface;
use Surus\Container;

final class ContainerTest extends TestCase
{
    public function testServicesAreMadeWithWhatTheyAskFor(): void
    {
        $container = new Container();
        $container->singleton(\ArrayObject::class, static fn () => new \ArrayObject(['made']));
        $service = new class (new \ArrayObject()) {
            public function __construct(public readonly \ArrayObject $list)
            {
            }
        };
        $made = $container->get($service::class);
        self::assertSame(['made'], $made->list->getArrayCopy());
        self::assertSame($made, $container->get($service::class));
        self::assertSame($container, $container->get(ContainerInterface::class));
    }

    public function testAScopedOneNeedsItsRequest(): void
    {
        $container = new Container();
        $container->scoped(\ArrayObject::class, static fn () => new \ArrayObject());
        self::assertTrue($container->isScoped(\ArrayObject::class));
        $this->expectException(\LogicException::class);
        $this->expectExceptionMessage('belongs to a request');
        $container->get(\ArrayObject::class);
    }

    public function testAnotherContainerIsAskedForTheRest(): void
    {
        $other = new class () implements ContainerInterface {
            public function get(string $id): mixed
            {
                return "other $id";
            }

            public function has(string $id): bool
            {
                return $id === 'mailer';
            }
        };
        $container = new Container();
        $container->delegate($other);
        self::assertSame('other mailer', $container->get('mailer'));
        self::assertFalse($container->has('no such'));
    }
}
