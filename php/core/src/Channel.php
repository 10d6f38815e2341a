<?php

declare(strict_types=1);

namespace Surus;

use Surus\Internal\Line;

use function Surus\Internal\at_caller;

/**
 * Passes values from tasks of a request to other ones, in their order. Iterating it receives until it is closed.
 *
 * @template T
 * @implements \IteratorAggregate<int, T>
 */
final class Channel implements \IteratorAggregate
{
    /** @var \SplQueue<T> */
    private \SplQueue $values;

    private readonly Line $senders;

    private readonly Line $receivers;

    private bool $closed = false;

    /**
     * @param int $room from 1 on: how many values wait for a receiver before senders wait
     * @throws \ValueError for less
     */
    public function __construct(private readonly int $room = 1)
    {
        if ($room < 1) {
            throw at_caller(new \ValueError("Surus\\Channel: \$room must be at least 1, $room given"));
        }
        $this->values = new \SplQueue();
        $this->senders = new Line(self::class);
        $this->receivers = new Line(self::class);
    }

    /**
     * Waits while there is no room.
     *
     * @param T $value
     * @throws ChannelClosed if it is closed, also while it waits
     */
    public function send(mixed $value): void
    {
        $this->senders->check();
        while (!$this->closed && \count($this->values) >= $this->room) {
            $this->senders->wait($this->senders->call(...));
        }
        if ($this->closed) {
            throw at_caller(new ChannelClosed('Nothing can be sent: the channel is closed'));
        }
        $this->values->enqueue($value);
        $this->receivers->call();
    }

    /**
     * Waits for a value.
     *
     * @return T
     * @throws ChannelClosed if it is closed, and has no more values
     */
    public function receive(): mixed
    {
        $this->senders->check();
        while (!$this->closed && $this->values->isEmpty()) {
            $this->receivers->wait($this->receivers->call(...));
        }
        if ($this->values->isEmpty()) {
            throw at_caller(new ChannelClosed('Nothing can be received: the channel is closed'));
        }
        $value = $this->values->dequeue();
        $this->senders->call();
        if (!$this->values->isEmpty()) {
            $this->receivers->call();
        }
        return $value;
    }

    /** Nothing can be sent any more; what was sent can be received. */
    public function close(): void
    {
        $this->senders->check();
        $this->closed = true;
        $this->senders->callAll();
        $this->receivers->callAll();
    }

    public function isClosed(): bool
    {
        return $this->closed;
    }

    /** @return \Generator<int, T> */
    public function getIterator(): \Generator
    {
        while (true) {
            try {
                $value = $this->receive();
            } catch (ChannelClosed) {
                return;
            }
            yield $value;
        }
    }
}
