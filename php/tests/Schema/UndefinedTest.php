<?php

declare(strict_types=1);

namespace Surus\Tests\Schema;

use PHPUnit\Framework\TestCase;
use Surus\Schema\Undefined;

final class UndefinedTest extends TestCase
{
    public function testWhatWasSentIsLeft(): void
    {
        $input = new class () {
            public string|Undefined $name = Undefined::Value;
            public string|null|Undefined $phone = null;
            public int $age = 0;
        };
        self::assertSame(['phone' => null, 'age' => 0], Undefined::without($input));
    }
}
