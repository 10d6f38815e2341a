<?php

declare(strict_types=1);

namespace Surus;

use Surus\Channels\Member;
use Surus\Channels\Publication;
use Surus\Http\Response;
use Surus\Internal\ChannelResult;

use function Surus\Internal\channel_history;
use function Surus\Internal\channel_members;
use function Surus\Internal\channel_publish;
use function Surus\Internal\channel_stream;
use function Surus\Internal\channel_subscribers;

/**
 * Channels: what is published on one reaches all who have subscribed to it, in all workers of the server, over WebSockets and event
 * streams. In every mode.
 *
 *     Channels::publish('news', 'Hello');
 *     $app->get('/news', fn () => Channels::stream('news'));
 *
 * The name of a channel is 1 to 200 bytes of UTF-8. Which channels have a history is configured: `[channel."news/*"]` in surus.toml.
 */
final class Channels
{
    /** Milliseconds after which the client of an event stream connects again. */
    public const RETRY = 2000;

    /**
     * Publishes to all who have subscribed, and waits for nobody.
     *
     * @param string $data at most 64 KiB; without $binary it is UTF-8. Event streams do not get what is binary
     * @param string $event its kind, for event streams; a WebSocket gets the data only
     *
     * @return ?string its position in the history of the channel; null if that has none
     *
     * @throws \ValueError if one of them is something else
     * @throws ChannelException if the history cannot be written: then nobody gets it
     */
    public static function publish(string $channel, string $data, string $event = '', bool $binary = false): ?string
    {
        $position = '';
        ChannelResult::check(channel_publish($channel, $data, $binary, $event, '', $position), $channel);

        return $position === '' ? null : $position;
    }

    /**
     * A response that goes on with what is published: an event stream (`EventSource` in browsers). No PHP waits for it. A client that
     * connects again gets what it has missed, as far as the history of the channels goes; if that is not all, an event `missed` whose data
     * is the name of the channel, before anything else.
     *
     * @param string|list<string> $channels at most 100
     * @param ?string $since for a client that is new: the position from which it wants what was published. With several channels
     *     positions in their order, with commas
     * @param int $retry milliseconds after which a client connects again
     *
     * @throws \ValueError if a name is none
     */
    public static function stream(string|array $channels, ?string $since = null, int $retry = self::RETRY): Response
    {
        return new Response(null, headers: self::open($channels, $since, $retry));
    }

    /**
     * The same where another framework makes the response: its headers. The response has this status and these headers, and no body.
     *
     *     return new \Symfony\Component\HttpFoundation\Response('', 200, Channels::open('news'));
     *
     * @param string|list<string> $channels
     *
     * @return array<string, string>
     */
    public static function open(string|array $channels, ?string $since = null, int $retry = self::RETRY): array
    {
        // The server knows what the client says itself: that counts more.
        $positions = explode(',', $since ?? '');
        foreach (array_values(array_unique((array) $channels)) as $place => $channel) {
            ChannelResult::check(channel_stream($channel, $positions[$place] ?? '', $retry), $channel);
        }

        return ['content-type' => 'text/event-stream', 'cache-control' => 'no-cache', 'x-accel-buffering' => 'no'];
    }

    /**
     * Who is in a channel, in all workers: {@see WebSocket::join()}.
     *
     * @return list<Member> in the order of their names
     */
    public static function members(string $channel): array
    {
        $members = channel_members($channel);
        if (is_int($members)) {
            ChannelResult::check($members, $channel);

            return [];
        }

        return array_map(
            static fn (array $member) => new Member($member[0], $member[1] === '' ? null : json_decode($member[1], true, flags: JSON_THROW_ON_ERROR)),
            $members,
        );
    }

    /** How many have subscribed, in all workers: WebSockets and event streams. */
    public static function subscribers(string $channel): int
    {
        return channel_subscribers($channel);
    }

    /**
     * What was published, oldest first.
     *
     * @param int $limit at most so many: the newest, or with $since the first that follow
     * @param ?string $since a position: only what follows it
     *
     * @return ?list<Publication> null if the channel has no history, or not all of what follows $since is kept
     *
     * @throws ChannelException if the history cannot be read
     */
    public static function history(string $channel, int $limit = 100, ?string $since = null): ?array
    {
        $newest = '';
        $kept = channel_history($channel, $since ?? '', $limit, $newest);
        if (is_int($kept)) {
            ChannelResult::check($kept, $channel);
        }
        if (!is_array($kept)) {
            return null;
        }

        return array_map(static fn (array $one) => new Publication($channel, $one[0], $one[1], $one[2], $one[3]), $kept);
    }

    /**
     * The position of what was published last: whoever subscribes with it later misses nothing. Null if the channel has no history.
     *
     * @throws ChannelException if the history cannot be read
     */
    public static function position(string $channel): ?string
    {
        $newest = '';
        $kept = channel_history($channel, '', 0, $newest);
        if (is_int($kept)) {
            ChannelResult::check($kept, $channel);
        }

        return $newest === '' ? null : $newest;
    }
}
