<?php

declare(strict_types=1);

namespace Surus\Tests\Http;

use PHPUnit\Framework\TestCase;
use Surus\Http\EventStream;

final class EventStreamTest extends TestCase
{
    /** @param list<mixed> $events */
    private static function encoded(array $events): string
    {
        return implode('', iterator_to_array(EventStream::encode($events), false));
    }

    public function testTextsAndFields(): void
    {
        self::assertSame("data: one\n\ndata: two\ndata: lines\n\n", self::encoded(['one', "two\r\nlines"]));
        $event = ['event' => 'tick', 'id' => 7, 'retry' => 100, 'data' => ['n' => 'ä/']];
        self::assertSame("event: tick\nid: 7\nretry: 100\ndata: {\"n\":\"ä/\"}\n\n", self::encoded([$event]));
        self::assertSame("data: {\"a\":1}\n\ndata: 5\n\n", self::encoded([['a' => 1], 5]));
    }

    public function testNobodyBeginsAnotherField(): void
    {
        $event = ['event' => "a\nid: 9\r\ndata: x", 'data' => "b\n\nevent: c"];
        self::assertSame("event: aid: 9data: x\ndata: b\ndata: \ndata: event: c\n\n", self::encoded([$event]));
    }
}
