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
        \PDO::ATTR_FETCH_TABLE_NAMES, \PDO::ATTR_DEFAULT_STR_PARAM,
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
            note_options($handle);
            $this->initial['place'] = self::placeOf($handle);
        } elseif ($handle instanceof \Redis) {
            $this->initial = [
                'database' => $handle->getDbNum(),
                'auth' => $handle->getAuth(),
                'options' => self::optionsOf($handle),
            ];
        } elseif ($handle instanceof \Memcached) {
            $this->initial['options'] = self::optionsOf($handle);
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
            return $check === null ? $this->answers() : $this->isClean() && $check($this->handle);
        } catch (\Exception) {
            return false;
        }
    }

    /** Whether its reset, whose answer may be still to come, was successful. */
    private function isClean(): bool
    {
        $handle = $this->native();

        return $handle === null || is_alive($handle) !== false;
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
     * @param bool $waits until it is clean; else the server cleans it, and its answer is read before the next use
     */
    public function reset(?\Closure $reset, bool $waits): bool
    {
        try {
            if (!$this->toBeginning($reset !== null)) {
                return false;
            }
            if (($waits || $reset !== null) && !$this->isClean()) {
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

    /** @param bool $hasReset whether the application sets afterwards what belongs to its session */
    private function toBeginning(bool $hasReset): bool
    {
        while ($this->handle instanceof \Doctrine\DBAL\Connection && $this->handle->isTransactionActive()) {
            $this->handle->rollBack();
        }
        $handle = $this->native();
        if ($handle instanceof \PDO) {
            return $this->resetPdo($handle);
        }
        if ($handle instanceof \mysqli) {
            return reset_connection($handle) === true && $handle->set_charset($this->initial['charset'])
                && $this->returnToPlace($handle);
        }
        if ($handle instanceof \PgSql\Connection) {
            $status = pg_transaction_status($handle);

            return $status !== PGSQL_TRANSACTION_ACTIVE && $status !== PGSQL_TRANSACTION_UNKNOWN
                && ($status === PGSQL_TRANSACTION_IDLE || @pg_query($handle, 'ROLLBACK') !== false)
                && @pg_query($handle, 'DISCARD ALL') !== false && self::forgetMessages($handle);
        }
        if ($handle instanceof \Redis) {
            return $handle->getMode() === \Redis::ATOMIC && $this->resetOptions($handle) && $this->resetRedis($handle);
        }
        if ($handle instanceof \Memcached) {
            return $this->resetOptions($handle);
        }
        if ($handle instanceof \CurlHandle) {
            curl_reset($handle);

            return curl_setopt_array($handle, [CURLOPT_COOKIELIST => 'ALL', CURLOPT_PRIVATE => null]);
        }
        // Who is bound or logged in, and what is sent along, cannot be asked for.
        if ($handle instanceof \LDAP\Connection || $handle instanceof \FTP\Connection || $handle instanceof \SoapClient) {
            return $hasReset;
        }

        return true;
    }

    /** @return list<?string> database and user */
    private static function placeOf(\mysqli $handle): array
    {
        return $handle->query('SELECT DATABASE(), CURRENT_USER()')->fetch_row();
    }

    /** A reset changes neither. False: it has another user, whose password is not known. */
    private function returnToPlace(\mysqli $handle): bool
    {
        [$database, $user] = self::placeOf($handle);
        [$before, $owner] = $this->initial['place'];

        return $user === $owner && ($database === $before || ($before !== null && $handle->select_db($before)));
    }

    /** @return array<int, mixed> options, by number: key prefix, serializer, time limits */
    private static function optionsOf(\Redis|\Memcached $handle): array
    {
        static $numbers = [];
        $class = $handle instanceof \Redis ? \Redis::class : \Memcached::class;
        $numbers[$class] ??= array_filter(
            (new \ReflectionClass($class))->getConstants(),
            static fn (mixed $value, string $name): bool => is_int($value) && preg_match('/^OPT_(?!FAILOVER|SLAVE)/', $name) === 1,
            ARRAY_FILTER_USE_BOTH,
        );
        $options = [];
        foreach ($numbers[$class] as $number) {
            $options[$number] = @$handle->getOption($number);
        }

        return $options;
    }

    private function resetOptions(\Redis|\Memcached $handle): bool
    {
        foreach (self::optionsOf($handle) as $option => $value) {
            $before = $this->initial['options'][$option] ?? null;
            if ($handle instanceof \Redis && $option === \Redis::OPT_READ_TIMEOUT && !$before) {
                // If no timeout was set, it is PHP's default; setting 0 would mean not to wait at all.
                $before = (float) ini_get('default_socket_timeout');
            }
            if ($value !== $before && @$handle->setOption($option, $before ?? '') !== true) {
                return false;
            }
        }

        return true;
    }

    /** Database, user, name, MULTI, WATCH, channels, whichever way they were set. */
    private function resetRedis(\Redis $handle): bool
    {
        ['database' => $database, 'auth' => $auth] = $this->initial;
        if ($auth === null && $handle->getAuth() !== null) {
            return false; // phpredis would use the last user's whenever it connects again
        }
        $handle->clearLastError();
        $isReset = $handle->rawCommand('RESET');
        if ($isReset === false && stripos((string) $handle->getLastError(), 'unknown command') !== false) {
            // Before Redis 6.2.
            $handle->clearLastError();

            return $handle->getAuth() === $auth && $handle->unwatch() && $handle->select($database);
        }
        if ($isReset !== true && $isReset !== 'RESET') {
            return false;
        }

        return ($auth === null || $handle->auth($auth))
            && (($database === 0 && $handle->getDbNum() === 0) || $handle->select($database));
    }

    /** Drops notices and notifications that arrived for the last user, and what the client was told about messages. */
    private static function forgetMessages(\PgSql\Connection $handle): bool
    {
        pg_set_error_verbosity($handle, PGSQL_ERRORS_DEFAULT);
        if (function_exists('pg_set_error_context_visibility')) {
            pg_set_error_context_visibility($handle, PGSQL_SHOW_CONTEXT_ERRORS); // PHP 8.3
        }
        pg_untrace($handle);
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
        if ($handle instanceof \Pdo\Pgsql) {
            $handle->setNoticeCallback(null); // else the last user would read what the next one's statements say
        }
        foreach ($this->initial as $attribute => $value) {
            if ($attribute === \PDO::ATTR_ERRMODE || $handle->getAttribute($attribute) !== $value) {
                $handle->setAttribute($attribute, $value);
            }
        }

        return true;
    }
}
