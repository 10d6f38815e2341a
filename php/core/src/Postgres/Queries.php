<?php

declare(strict_types=1);

namespace Surus\Postgres;

/**
 * What takes statements: a client or a transaction.
 *
 * Numbers and booleans come as such (`int2`, `int4`, `int8`, `float4`, `float8`, `bool`), NULL as null, `bytea` as its bytes, and
 * everything else as the text that PostgreSQL prints: `numeric`, dates, `json`, arrays.
 */
interface Queries
{
    /**
     * All rows.
     *
     * @param list<mixed> $parameters for $1, $2 and so on: null, booleans, numbers, strings, dates, backed enums, Stringable, and lists
     *     of these for arrays (`WHERE id = ANY($1)`)
     *
     * @return list<array<string, mixed>> by names of columns
     *
     * @throws Error
     * @throws ConnectionError
     */
    public function query(string $sql, array $parameters = []): array;

    /**
     * The first row.
     *
     * @param list<mixed> $parameters
     *
     * @return ?array<string, mixed> null: there is none
     *
     * @throws Error
     * @throws ConnectionError
     */
    public function queryOne(string $sql, array $parameters = []): ?array;

    /**
     * All rows, as objects: a column's value is given to the public property of its name, as a date or a case of a backed enum
     * where the property is one. No constructor is called.
     *
     * @template T of object
     *
     * @param class-string<T> $class
     * @param list<mixed> $parameters
     *
     * @return list<T>
     *
     * @throws Error
     * @throws ConnectionError
     * @throws \ValueError if the class has no such property
     * @throws \TypeError if it has another type
     */
    public function queryInto(string $class, string $sql, array $parameters = []): array;

    /**
     * Runs a statement for what it does.
     *
     * @param list<mixed> $parameters
     *
     * @return int how many rows it has inserted, changed or deleted
     *
     * @throws Error
     * @throws ConnectionError
     */
    public function execute(string $sql, array $parameters = []): int;

    /**
     * Runs a statement for each of several lists of parameters, all sent at once: much faster than one after the other.
     *
     * @template K of array-key
     *
     * @param array<K, list<mixed>> $lists
     *
     * @return array<K, list<array<string, mixed>>> the rows of each, under its key
     *
     * @throws Error the first that fails. Others may have been executed: each is a statement of its own
     * @throws ConnectionError
     */
    public function queryEach(string $sql, array $lists): array;

    /**
     * The same for what the statement does.
     *
     * @param array<list<mixed>> $lists
     *
     * @return int how many rows were inserted, changed or deleted in all
     *
     * @throws Error the first that fails. Others may have been executed, outside of a transaction
     * @throws ConnectionError
     */
    public function executeEach(string $sql, array $lists): int;

    /**
     * The rows one after the other, for results that are too large for memory: as many at a time are read from the server, and the next
     * ones when they are needed. A client rolls back what the statement has done if the loop is left before the last row.
     *
     * @param string $sql SELECT or VALUES
     * @param list<mixed> $parameters
     * @param int $size how many rows are in memory at a time
     *
     * @return \Generator<int, array<string, mixed>>
     *
     * @throws Error
     * @throws ConnectionError
     */
    public function stream(string $sql, array $parameters = [], int $size = 500): \Generator;

    /**
     * Sends many rows: the fastest way into a table.
     *
     *     $db->copyFrom('COPY products (id, name) FROM STDIN', [[1, 'a'], [2, null]]);
     *
     * @param string $sql COPY … FROM STDIN
     * @param iterable<string|list<mixed>> $pieces lists of values, each a row in the text format; or strings as the statement wants them,
     *     with ends of lines, cut anywhere. They are taken as fast as the server reads them
     *
     * @return int how many rows were copied: all or, with an exception, none
     *
     * @throws Error
     * @throws ConnectionError
     */
    public function copyFrom(string $sql, iterable $pieces): int;

    /**
     * Gets many rows: `COPY … TO STDOUT`, a string for each line. They are read when they are needed. If the loop is left before the last one,
     * the connection is closed, and so a transaction is lost.
     *
     * @return \Generator<int, string>
     *
     * @throws Error
     * @throws ConnectionError
     */
    public function copyTo(string $sql): \Generator;
}
