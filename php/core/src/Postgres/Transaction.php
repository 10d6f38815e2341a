<?php

declare(strict_types=1);

namespace Surus\Postgres;

use Surus\Internal\PostgresCopy;
use Surus\Internal\PostgresStream;

use function Surus\Internal\postgres_each;
use function Surus\Internal\postgres_query;

/** What the callable of {@see \Surus\Postgres::transaction()} gets. It takes statements until that has ended. */
final class Transaction implements Queries
{
    /** @internal {@see \Surus\Postgres::transaction()} makes it */
    public function __construct(private readonly int $number)
    {
    }

    public function query(string $sql, array $parameters = []): array
    {
        return postgres_query(0, $this->number, $sql, $parameters, 0);
    }

    public function queryOne(string $sql, array $parameters = []): ?array
    {
        return postgres_query(0, $this->number, $sql, $parameters, 1);
    }

    public function queryInto(string $class, string $sql, array $parameters = []): array
    {
        return postgres_query(0, $this->number, $sql, $parameters, 0, $class);
    }

    public function execute(string $sql, array $parameters = []): int
    {
        return postgres_query(0, $this->number, $sql, $parameters, 2);
    }

    public function queryEach(string $sql, array $lists): array
    {
        return postgres_each(0, $this->number, $sql, $lists, 0);
    }

    public function executeEach(string $sql, array $lists): int
    {
        return \array_sum(postgres_each(0, $this->number, $sql, $lists, 2));
    }

    public function stream(string $sql, array $parameters = [], int $size = 500): \Generator
    {
        PostgresStream::check($size);
        yield from PostgresStream::rows($this->number, $sql, $parameters, $size);
    }

    public function copyFrom(string $sql, iterable $pieces): int
    {
        return PostgresCopy::from($this->number, $sql, $pieces);
    }

    public function copyTo(string $sql): \Generator
    {
        yield from PostgresCopy::to($this->number, $sql);
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
