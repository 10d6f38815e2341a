<?php

declare(strict_types=1);

namespace Surus;

use Surus\Internal\Origin;
use Surus\Internal\PoolLease;
use Surus\Internal\PoolPlace;
use Surus\Internal\PooledConnection;

use function Surus\Internal\call_ticket;
use function Surus\Internal\forget_pool;
use function Surus\Internal\note_pool;
use function Surus\Internal\ticket;
use function Surus\Internal\wait_for_call;

/**
 * A pool of connections, each used by one request at a time.
 *
 *     $pool = new Pool(fn () => new PDO($dsn), max: 16);
 *     $rows = $pool->use(fn (PDO $db) => $db->query($sql)->fetchAll());
 *
 * When all are in use, requests wait in order of arrival. A connection is checked before each use and reset after it:
 * transaction, settings, temporary tables, locks. It is closed if its use ended with an error of the connection, or was
 * interrupted by the end of the request.
 *
 * A nested use() of the same pool takes another connection.
 *
 * @template T of object
 */
final class Pool
{
    /** @var list<PooledConnection<T>> free, the last used one at the end */
    private array $free = [];

    /** @var \SplQueue<PoolPlace> */
    private \SplQueue $line;

    /** The number of connections in use, free, or being opened. */
    private int $open = 0;

    /** @var array<string, int> number of connections by request and task */
    private array $held = [];

    /** For the status. */
    private int $number = 0;
    private readonly string $label;
    private int $resets = 0;
    private int $dropped = 0;
    private int $closed = 0;

    /**
     * @param \Closure(): T $connect opens a connection
     * @param int $max maximum number of open connections, in this worker
     * @param float $timeout seconds that use() waits for one before it throws {@see PoolTimeout}
     * @param float $idle seconds after which an unused connection is not used any more
     * @param float $age seconds after which a connection is not used any more
     * @param ?\Closure(T): void $reset called with each new connection, and after each use when it has been reset;
     *     session settings belong here
     * @param ?\Closure(T): bool $check whether a free one still works, instead of the check for its class
     * @param int $min number of unused connections that are kept in spite of $idle
     * @param string $name in `surus status` and the metrics; by default the place where the pool is made
     */
    public function __construct(
        private readonly \Closure $connect,
        private readonly int $max = 16,
        private readonly float $timeout = 5.0,
        private readonly float $idle = 60.0,
        private readonly float $age = 3600.0,
        private readonly ?\Closure $reset = null,
        private readonly ?\Closure $check = null,
        private readonly int $min = 0,
        string $name = '',
    ) {
        if ($max < 1) {
            throw new \ValueError("A pool of $max connections has none to give: max must be 1 or more");
        }
        if ($min < 0 || $min > $max) {
            throw new \ValueError("A pool of at most $max connections cannot keep $min: min must be from 0 to max");
        }
        $this->label = $name === '' ? Origin::caller() : $name;
        $this->line = new \SplQueue();
    }

    /**
     * Calls $work with a connection that is not used elsewhere meanwhile.
     *
     * @template R
     *
     * @param callable(T): R $work
     *
     * @return R
     *
     * @throws PoolTimeout
     */
    public function use(callable $work): mixed
    {
        $lease = new PoolLease($this->take(...), $this->give(...));
        try {
            $result = $work($lease->connection->handle);
            $lease->isClean = true;

            return $result;
        } catch (\Throwable $error) {
            $lease->isClean = !PooledConnection::isLost($error);
            throw $error;
        } finally {
            // If the request ends in the middle, `isClean` is still false.
            $lease->end();
        }
    }

    /**
     * Opens connections until `min` are open, so that the first requests need not: call it where the application boots.
     *
     * @throws \Exception that of a connection that could not be opened
     */
    public function warmUp(): void
    {
        while ($this->open < $this->min) {
            $this->open++;
            $connection = null;
            try {
                $connection = new PooledConnection(($this->connect)(), $this->reset);
            } finally {
                $this->pass($connection);
            }
        }
    }

    /** @return array{open: int, free: int, waiting: int} */
    public function status(): array
    {
        return ['open' => $this->open, 'free' => count($this->free), 'waiting' => count($this->line)];
    }

    /** @return PooledConnection<T> */
    private function take(): PooledConnection
    {
        $holder = PoolLease::holder();
        // Below there may be waits: the room for a connection is reserved first.
        $connection = null;
        if ($this->line->isEmpty() && $this->free !== []) {
            $connection = array_pop($this->free);
        } elseif ($this->line->isEmpty() && $this->open < $this->max) {
            $this->open++;
        } else {
            $connection = $this->wait($holder);
        }
        $isTaken = false;
        try {
            $idle = $this->open - count($this->free) <= $this->min ? \INF : $this->idle;
            if ($connection === null || !$connection->isGood($idle, $this->age, $this->check)) {
                $this->dropped += $connection === null ? 0 : 1;
                $connection?->close();
                $connection = new PooledConnection(($this->connect)(), $this->reset);
            }
            $this->held[$holder] = ($this->held[$holder] ?? 0) + 1;
            $isTaken = true;
            $this->note();

            return $connection;
        } finally {
            if (!$isTaken) {
                $this->pass(null);
            }
        }
    }

    /** @return ?PooledConnection<T> null: there is room for another one */
    private function wait(string $holder): ?PooledConnection
    {
        if (($this->held[$holder] ?? 0) >= $this->max) {
            throw new PoolTimeout("This request has all {$this->max} connections of the pool itself: use() within use() takes another one");
        }
        $place = new PoolPlace(ticket());
        $this->line->enqueue($place);
        $this->note();
        $isTaken = false;
        try {
            $isCalled = wait_for_call($place->ticket, $this->timeout);
            $isTaken = $place->isCalled;
        } finally {
            if (!$isTaken) {
                $place->hasLeft = true;
                if ($place->isCalled) {
                    $this->pass($place->connection);
                }
            }
        }
        if (!$isTaken) {
            throw new PoolTimeout($isCalled === null
                ? 'All connections of the pool are in use, and nothing can wait here (in a destructor that the collector of cycles runs)'
                : "No connection of the pool became free within {$this->timeout} s: {$this->max} are in use");
        }

        return $place->connection;
    }

    /** @param PooledConnection<T> $connection */
    private function give(PooledConnection $connection, string $holder, bool $isClean): void
    {
        if (--$this->held[$holder] === 0) {
            unset($this->held[$holder]);
        }
        $isKept = false;
        try {
            // Who is next in line gets the first one that is clean: the reset of another one may take longer.
            $isKept = $isClean && !$connection->isOld($this->age) && $connection->reset($this->reset, !$this->line->isEmpty());
        } finally {
            if ($isKept) {
                $this->resets++;
            } else {
                $this->dropped++;
                $connection->close();
            }
            $this->pass($isKept ? $connection : null);
        }
    }

    /**
     * Passes it to the request that has waited longest.
     *
     * @param ?PooledConnection<T> $connection null: that one may open another
     */
    private function pass(?PooledConnection $connection): void
    {
        while (!$this->line->isEmpty()) {
            $place = $this->line->dequeue();
            if (!$place->hasLeft) {
                $place->connection = $connection;
                $place->isCalled = true;
                call_ticket($place->ticket);
                $this->note();

                return;
            }
        }
        if ($connection === null) {
            $this->open--;
        } else {
            $this->free[] = $connection;
        }
        $this->closeUnused();
        $this->note();
    }

    /** Closes unused connections: the ones unused for the longest time are at the beginning. */
    private function closeUnused(): void
    {
        while ($this->free !== [] && ($this->free[0]->isOld($this->age)
            || (count($this->free) > $this->min && $this->free[0]->isUnused($this->idle)))) {
            array_shift($this->free)->close();
            $this->open--;
            $this->closed++;
        }
    }

    private function note(): void
    {
        $free = count($this->free);
        $this->number = note_pool(
            $this->number,
            $this->label,
            $this->max,
            $free,
            $this->open - $free,
            count($this->line),
            $this->resets,
            $this->dropped,
            $this->closed,
        );
    }

    public function __destruct()
    {
        if ($this->number !== 0) {
            forget_pool($this->number);
        }
    }
}
