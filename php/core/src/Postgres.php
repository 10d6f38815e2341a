<?php

declare(strict_types=1);

namespace Surus;

use Surus\Internal\PostgresCopy;
use Surus\Internal\PostgresFailure;
use Surus\Internal\PostgresStream;
use Surus\Postgres\ConnectionError;
use Surus\Postgres\Error;
use Surus\Postgres\Notification;
use Surus\Postgres\Queries;
use Surus\Postgres\Transaction;

use function Surus\Internal\at_caller;
use function Surus\Internal\postgres_begin;
use function Surus\Internal\postgres_client;
use function Surus\Internal\postgres_cut;
use function Surus\Internal\postgres_each;
use function Surus\Internal\postgres_end;
use function Surus\Internal\postgres_listen;
use function Surus\Internal\postgres_notification;
use function Surus\Internal\postgres_query;
use function Surus\Internal\postgres_unlisten;

/**
 * A client of PostgreSQL that all requests use at the same time, over few connections.
 *
 *     $db = new Postgres('host=db dbname=shop user=shop password=…');
 *     $rows = $db->query('SELECT id, name FROM products WHERE price < $1', [20]);
 *
 * What requests and tasks ask at the same time is sent at once, without waiting for each other's answers. Statements are
 * prepared by themselves, and stay so. Values only come in by parameters: $1, $2 and so on.
 *
 * All clients of a process with the same arguments share their connections, which stay open from request to request.
 */
final class Postgres implements Queries
{
    private readonly int $number;

    /**
     * Opens nothing yet.
     *
     * @param string $connection "host=… port=… user=… password=… dbname=…" or a URL "postgresql://user:password@host:port/dbname";
     *     besides application_name, options ("-c search_path=shop -c statement_timeout=5s") and connect_timeout (5 s); a host with a
     *     "/" is the folder of a Unix socket
     * @param int $connections the maximum number of connections of this worker
     *
     * @throws \ValueError if one of them is wrong
     */
    public function __construct(#[\SensitiveParameter] string $connection, int $connections = 4)
    {
        try {
            $this->number = postgres_client($connection, $connections);
        } catch (\ValueError $error) {
            // Not that one: its trace has the password.
            throw at_caller(new \ValueError($error->getMessage()));
        }
    }

    /**
     * @param list<mixed> $parameters for $1, $2 and so on
     *
     * @return list<array<string, mixed>>
     *
     * @throws Error
     * @throws ConnectionError
     */
    public function query(string $sql, array $parameters = []): array
    {
        return postgres_query($this->number, 0, $sql, $parameters, 0);
    }

    public function queryOne(string $sql, array $parameters = []): ?array
    {
        return postgres_query($this->number, 0, $sql, $parameters, 1);
    }

    public function queryInto(string $class, string $sql, array $parameters = []): array
    {
        return postgres_query($this->number, 0, $sql, $parameters, 0, $class);
    }

    public function execute(string $sql, array $parameters = []): int
    {
        return postgres_query($this->number, 0, $sql, $parameters, 2);
    }

    public function queryEach(string $sql, array $lists): array
    {
        return postgres_each($this->number, 0, $sql, $lists, 0);
    }

    public function executeEach(string $sql, array $lists): int
    {
        return \array_sum(postgres_each($this->number, 0, $sql, $lists, 2));
    }

    /** The rows come in a transaction of their own, which needs a connection for itself until the last one was read. */
    public function stream(string $sql, array $parameters = [], int $size = 500): \Generator
    {
        PostgresStream::check($size);
        yield from $this->pieces(static fn (int $number): \Generator => PostgresStream::rows($number, $sql, $parameters, $size));
    }

    /** In a transaction of its own. */
    public function copyFrom(string $sql, iterable $pieces): int
    {
        return $this->transaction(static fn (Transaction $transaction): int => $transaction->copyFrom($sql, $pieces));
    }

    /** In a transaction of its own. */
    public function copyTo(string $sql): \Generator
    {
        return $this->pieces(static fn (int $number): \Generator => PostgresCopy::to($number, $sql));
    }

    /**
     * What comes piece by piece, in a transaction of its own.
     *
     * @template T
     *
     * @param \Closure(int): \Generator<int, T> $of what a transaction of this number gives
     *
     * @return \Generator<int, T>
     */
    private function pieces(\Closure $of): \Generator
    {
        $number = postgres_begin($this->number, 'BEGIN');
        $isOver = false;
        try {
            yield from $of($number);
            $isOver = true;
            postgres_end($number, true);
        } finally {
            if (!$isOver) {
                self::giveUp($number);
            }
        }
    }

    /** Rolls back, or closes the connection where nothing can wait for that. */
    private static function giveUp(int $number): void
    {
        try {
            postgres_end($number, false);
        } catch (\RuntimeException | \LogicException) {
            // It is lost, and rolled back by the server.
            postgres_cut($number);
        }
    }

    /**
     * Listens to a channel: what others send to it with NOTIFY, from the moment when this returns. All listeners of a worker share one
     * connection, besides the others. When it is lost, the next notification says that some may have been missed.
     *
     *     foreach ($db->listen('orders') as $notification) {
     *         $order = $notification->missed ? null : $notification->payload;
     *     }
     *
     * It ends with the request, or when the loop is left.
     *
     * @param string $channel its name as it is: LISTEN and NOTIFY without quotes fold names to small letters
     *
     * @return \Generator<int, Notification>
     *
     * @throws Error
     * @throws ConnectionError
     */
    public function listen(string $channel): \Generator
    {
        $number = postgres_listen($this->number, $channel);

        return (static function () use ($number, $channel): \Generator {
            try {
                while (($found = postgres_notification($number)) !== null) {
                    yield new Notification($channel, ...$found);
                }
            } finally {
                postgres_unlisten($number);
            }
        })();
    }

    /**
     * Runs $work in a transaction, on a connection that nobody else uses meanwhile. Commits it when $work returns; rolls it back
     * when it throws. If the request ends in the middle, the connection is closed, and the server rolls it back.
     *
     * Of several connections one is left for everything else, so one transaction fewer can run than there are connections.
     *
     * @template R
     *
     * @param callable(Transaction): R $work
     * @param string $mode for example "ISOLATION LEVEL SERIALIZABLE" or "READ ONLY"
     *
     * @return R
     *
     * @throws Error of COMMIT, or if a statement had failed and $work went on
     * @throws ConnectionError
     */
    public function transaction(callable $work, string $mode = ''): mixed
    {
        $number = postgres_begin($this->number, \trim("BEGIN $mode"));
        $isOver = false;
        try {
            $result = $work(new Transaction($number));
            $isOver = true;
            if (!postgres_end($number, true)) {
                throw at_caller(PostgresFailure::notCommitted());
            }

            return $result;
        } catch (\Throwable $error) {
            if (!$isOver) {
                $isOver = true;
                // Whatever becomes of that: what has gone wrong first is told.
                self::giveUp($number);
            }
            throw $error;
        } finally {
            if (!$isOver) {
                postgres_cut($number);
            }
        }
    }

    /** @internal Its number is this process's: elsewhere it would be that of another client, with another user's rights */
    public function __serialize(): never
    {
        throw new \LogicException(self::class . ' cannot be serialized: it belongs to its process');
    }

    /** @internal */
    public function __unserialize(array $data): never
    {
        throw new \LogicException(self::class . ' cannot be unserialized: it belongs to its process');
    }
}
