<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\ChannelException;

/**
 * What the functions of channels return, and its errors.
 *
 * @internal
 */
final class ChannelResult
{
    public const DONE = 0;
    public const NO_SERVER = 1;
    public const NAME = 2;
    public const NOT_TEXT = 3;
    public const TOO_LARGE = 4;
    public const TOO_MANY = 5;
    public const OVER = 6;
    public const NO_MEMORY = 7;
    public const UNAVAILABLE = 8;
    public const MISSED = 9;
    public const ELSEWHERE = 10;

    /**
     * @throws \ValueError if an argument is wrong
     * @throws ChannelException if the server cannot do it
     */
    public static function check(int $result, string $channel): void
    {
        if ($result === self::DONE || $result === self::MISSED) {
            return;
        }
        $name = '"' . substr($channel, 0, 64) . '"';

        throw at_caller(match ($result) {
            self::NAME => new \ValueError('The name of a channel or a member is 1 to 200 bytes of UTF-8, that of an event at most 200'),
            self::NOT_TEXT => new \ValueError('A text that is published is UTF-8, which this is not: publish it with binary: true'),
            self::TOO_LARGE => new \ValueError('A publication has at most 65536 bytes, and what is said of a member at most 4096'),
            self::TOO_MANY => new \ValueError('A WebSocket has at most 1000 channels, an event stream at most 100'),
            self::OVER => new ChannelException("The response has begun: it cannot go on with $name"),
            self::NO_MEMORY => new ChannelException("The history of $name has no memory: the setting shared_memory is 0"),
            self::ELSEWHERE => new ChannelException('In process mode the members of channels are not known here: PHP does not run where the connections are'),
            self::NO_SERVER => new ChannelException('Channels are for code that a server runs, for a request: nobody is connected to this process'),
            default => new ChannelException("The history of $name is not available: the shared memory is full of what is never removed, another process holds it, or Redis (channels_redis) does not answer"),
        });
    }
}
