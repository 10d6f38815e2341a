<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * A connection of a pool: whether it still works, and how it is reset.
 *
 * @template-covariant T of object
 *
 * @internal
 */
final class PooledConnection
{
    /** Attributes of PDO that a user may have changed. */
    private const ATTRIBUTES = [
        \PDO::ATTR_ERRMODE, \PDO::ATTR_CASE, \PDO::ATTR_ORACLE_NULLS, \PDO::ATTR_STRINGIFY_FETCHES, \PDO::ATTR_DEFAULT_FETCH_MODE,
        \PDO::ATTR_EMULATE_PREPARES, \PDO::ATTR_AUTOCOMMIT, \PDO::ATTR_STATEMENT_CLASS,
    ];

    /** Messages of servers and drivers for a lost connection. */
    private const LOST = '/gone away|went away|lost connection|server closed the connection|no connection to the server|could not connect'
        . '|connection (?:was|has been|is|already)? ?(?:refused|reset|closed|killed|lost|timed out)|broken pipe|terminating connection'
        . '|SSL connection has been closed|read error on connection|packets? out of order|commands out of sync|lost synchronization/i';

    private float $opened;
    private float $used;

    /** @var array<int|string, mixed> */
    private array $initial = [];

    /**
     * @param T $handle
     * @param ?\Closure(T): void $reset
     */
    public function __construct(public ?object $handle, ?\Closure $reset)
    {
        $this->opened = $this->used = hrtime(true) / 1e9;
        $handle = $this->native();
        if ($handle instanceof \PDO) {
            if ($handle->getAttribute(\PDO::ATTR_PERSISTENT)) {
                throw new \LogicException('A pool keeps its connections itself: open them without PDO::ATTR_PERSISTENT');
            }
            foreach (self::ATTRIBUTES as $attribute) {
                try {
                    $this->initial[$attribute] = @$handle->getAttribute($attribute);
                } catch (\PDOException) {
                    // Not an attribute of this driver.
                }
            }
            if ($handle->getAttribute(\PDO::ATTR_DRIVER_NAME) === 'mysql') {
                $buffered = \PDO::MYSQL_ATTR_USE_BUFFERED_QUERY;
                $this->initial[$buffered] = $handle->getAttribute($buffered);
            }
        } elseif ($handle instanceof \mysqli) {
            $this->initial['charset'] = $handle->character_set_name();
            $this->initial['numbers'] = native_numbers($handle);
            $this->initial['database'] = $handle->query('SELECT DATABASE()')->fetch_row()[0] ?? null;
        } elseif ($handle instanceof \Redis) {
            $this->initial = ['database' => $handle->getDbNum(), 'options' => self::optionsOf($handle)];
        }
        if ($reset !== null) {
            $reset($this->handle);
        }
    }

    /** The driver's connection below Doctrine's. */
    private function native(): ?object
    {
        $native = $this->handle instanceof \Doctrine\DBAL\Connection ? $this->handle->getNativeConnection() : $this->handle;

        return is_object($native) ? $native : null;
    }

    /** Whether the error means that the connection is lost: it must not be used again. */
    public static function isLost(\Throwable $error): bool
    {
        for (; $error !== null; $error = $error->getPrevious()) {
            $state = $error instanceof \PDOException ? (string) ($error->errorInfo[0] ?? $error->getCode()) : '';
            if ($error instanceof \RedisException || str_starts_with($state, '08') || str_starts_with($state, '57P')
                || preg_match(self::LOST, $error->getMessage()) === 1) {
                return true;
            }
        }

        return false;
    }

    public function isOld(float $age): bool
    {
        return hrtime(true) / 1e9 - $this->opened > $age;
    }

    public function isUnused(float $seconds): bool
    {
        return hrtime(true) / 1e9 - $this->used > $seconds;
    }

    /** @param ?\Closure(T): bool $check */
    public function isGood(float $idle, float $age, ?\Closure $check): bool
    {
        if ($this->isOld($age) || $this->isUnused($idle)) {
            return false;
        }
        try {
            return $check === null ? $this->answers() : $check($this->handle);
        } catch (\Exception) {
            return false;
        }
    }

    private function answers(): bool
    {
        $handle = $this->native();

        return $handle === null ? true : is_alive($handle) ?? match (true) {
            $handle instanceof \mysqli => @$handle->query('SELECT 1') !== false,
            $handle instanceof \PgSql\Connection => @pg_query($handle, 'SELECT 1') !== false,
            $handle instanceof \Redis => (bool) $handle->ping(),
            default => true,
        };
    }

    /**
     * Resets the connection. False: it cannot be used again.
     *
     * @param ?\Closure(T): void $reset
     */
    public function reset(?\Closure $reset): bool
    {
        try {
            if (!$this->toBeginning()) {
                return false;
            }
            if ($reset !== null) {
                $reset($this->handle);
            }
        } catch (\Exception) {
            return false;
        }
        $this->used = hrtime(true) / 1e9;

        return true;
    }

    public function close(): void
    {
        $this->handle = null;
    }

    private function toBeginning(): bool
    {
        while ($this->handle instanceof \Doctrine\DBAL\Connection && $this->handle->isTransactionActive()) {
            $this->handle->rollBack();
        }
        $handle = $this->native();
        if ($handle instanceof \PDO) {
            return $this->resetPdo($handle);
        }
        if ($handle instanceof \mysqli) {
            native_numbers($handle, $this->initial['numbers']);

            return reset_connection($handle) === true && $handle->set_charset($this->initial['charset'])
                && ($this->initial['database'] === null
                    ? $handle->query('SELECT DATABASE()')->fetch_row()[0] === null
                    : $handle->select_db($this->initial['database']));
        }
        if ($handle instanceof \PgSql\Connection) {
            $status = pg_transaction_status($handle);

            return $status !== PGSQL_TRANSACTION_ACTIVE && $status !== PGSQL_TRANSACTION_UNKNOWN
                && ($status === PGSQL_TRANSACTION_IDLE || @pg_query($handle, 'ROLLBACK') !== false)
                && @pg_query($handle, 'DISCARD ALL') !== false && self::forgetMessages($handle);
        }
        if ($handle instanceof \Redis) {
            return $handle->getMode() === \Redis::ATOMIC && $this->resetRedis($handle);
        }

        return true;
    }

    /** @return array<int, mixed> options of phpredis, by number: key prefix, serializer, time limits */
    private static function optionsOf(\Redis $handle): array
    {
        static $numbers = null;
        $numbers ??= array_filter(
            (new \ReflectionClass(\Redis::class))->getConstants(),
            static fn (mixed $value, string $name): bool => is_int($value) && preg_match('/^OPT_(?!FAILOVER|SLAVE)/', $name) === 1,
            ARRAY_FILTER_USE_BOTH,
        );
        $options = [];
        foreach ($numbers as $number) {
            $options[$number] = @$handle->getOption($number);
        }

        return $options;
    }

    private function resetRedis(\Redis $handle): bool
    {
        foreach (self::optionsOf($handle) as $option => $value) {
            $before = $this->initial['options'][$option] ?? null;
            // If no timeout was set, it is PHP's default; setting 0 would mean not to wait at all.
            $before = $option === \Redis::OPT_READ_TIMEOUT && !$before ? (float) ini_get('default_socket_timeout') : $before;
            if ($value !== $before && @$handle->setOption($option, $before ?? '') !== true) {
                return false;
            }
        }
        $handle->clearLastError();

        return $handle->unwatch() && ($handle->getDbNum() === $this->initial['database'] || $handle->select($this->initial['database']));
    }

    /** Drops notices and notifications that arrived for the last user. */
    private static function forgetMessages(\PgSql\Connection $handle): bool
    {
        pg_last_notice($handle, PGSQL_NOTICE_CLEAR);
        while (pg_get_notify($handle) !== false) {
            continue;
        }

        return true;
    }

    private function resetPdo(\PDO $handle): bool
    {
        // SQLite cannot reset temporary tables, attached files, PRAGMAs and functions, and a new connection is cheap.
        if ($handle->getAttribute(\PDO::ATTR_DRIVER_NAME) === 'sqlite') {
            return false;
        }
        $isReset = reset_connection($handle);
        if ($isReset === false) {
            return false;
        }
        if ($isReset === null && $handle->inTransaction()) {
            $handle->rollBack();
        }
        foreach ($this->initial as $attribute => $value) {
            if ($attribute === \PDO::ATTR_ERRMODE || $handle->getAttribute($attribute) !== $value) {
                $handle->setAttribute($attribute, $value);
            }
        }

        return true;
    }
}
