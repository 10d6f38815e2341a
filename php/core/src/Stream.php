<?php

declare(strict_types=1);

namespace Surus;

use Surus\Internal\Queues;

/**
 * A log of entries that several groups read, each on its own: what has happened, for all who have to know. An entry stays until each group
 * has acknowledged it, on disk, whatever dies meanwhile.
 */
final class Stream
{
    /** @throws \ValueError if the name is none */
    public function __construct(public readonly string $name)
    {
        Queues::needName($name);
    }

    /**
     * Adds an entry. When this returns, it is on disk.
     *
     * @param mixed $payload it is serialised; 64 MB at most
     *
     * @return int its position: the first one has 1
     *
     * @throws QueueException if it cannot be kept: the disk or `queue_size` is full
     */
    public function append(mixed $payload): int
    {
        [$position] = Queues::ask('append', ['stream' => $this->name], Queues::serialized($payload));

        return $position;
    }

    /**
     * The next entries for a group: each goes to one of its readers. This process has them until they are acknowledged; when it dies, they
     * go to the next reader at once. A group that is new begins with the oldest entry that is there.
     *
     * @param int $count how many at most
     * @param float $wait seconds to wait for the first one
     * @param float $idle those, too, that another reader has had for so many seconds without acknowledging them; 0: not as long as it lives
     *
     * @return list<StreamEntry>
     *
     * @throws QueueException if the process with the streams does not say whether there are any: is a server running?
     */
    public function read(string $group, int $count = 100, float $wait = 0.0, float $idle = 60.0): array
    {
        Queues::needName($group);
        Queues::needDelay('Surus\\Stream::read(): Argument #3', $wait);
        Queues::needDelay('Surus\\Stream::read(): Argument #4', $idle);
        if ($count < 1 || $count > 10_000) {
            throw Internal\at_caller(new \ValueError("Surus\\Stream::read(): Argument #2 (\$count) must be from 1 to 10000, $count given"));
        }
        [$heads, $payloads] = Queues::ask('read', ['stream' => $this->name, 'group' => $group, 'count' => $count, 'wait' => $wait, 'idle' => $idle]);
        $entries = [];
        $at = 0;
        foreach ($heads as [$position, $attempt, $appended, $length]) {
            $entries[] = new StreamEntry($position, \substr($payloads, $at, $length), $attempt, $appended / 1000);
            $at += $length;
        }

        return $entries;
    }

    /**
     * The group has done with these entries. What all groups have acknowledged is removed.
     *
     * @param StreamEntry|int ...$entries or their positions
     *
     * @return int how many were not acknowledged before
     */
    public function acknowledge(string $group, StreamEntry|int ...$entries): int
    {
        Queues::needName($group);
        $positions = \array_map(static fn (StreamEntry|int $entry): int => \is_int($entry) ? $entry : $entry->position, \array_values($entries));
        if ($positions === []) {
            return 0;
        }
        if (\min($positions) < 1) {
            throw Internal\at_caller(new \ValueError('The position of an entry is from 1 on, ' . \min($positions) . ' given'));
        }
        [$count] = Queues::ask('acknowledge', ['stream' => $this->name, 'group' => $group, 'positions' => $positions]);

        return $count;
    }

    /** A group that nobody reads any more is forgotten, so that nothing is kept for it. */
    public function forget(string $group): void
    {
        Queues::needName($group);
        Queues::ask('ungroup', ['stream' => $this->name, 'group' => $group]);
    }

    /**
     * How much it has.
     *
     * @return array{entries: int, last: int, groups: array<string, int>} entries that are kept, the position of the last one, and by
     *     group how many are not acknowledged
     */
    public function counts(): array
    {
        [$streams] = Queues::ask('stream', ['stream' => $this->name]);
        $own = $streams[0] ?? ['entries' => 0, 'last' => 0, 'groups' => []];

        return ['entries' => $own['entries'], 'last' => $own['last'], 'groups' => \array_column($own['groups'], 'left', 'group')];
    }
}
