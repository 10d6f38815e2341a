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
     * All rows, as objects: a column's value is given to the public property of its name. No constructor is called.
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
}
