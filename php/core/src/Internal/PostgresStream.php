<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * Rows by a cursor, a part at a time.
 *
 * @internal
 */
final class PostgresStream
{
    /** @param list<mixed> $parameters */
    public static function rows(int $transaction, string $sql, array $parameters, int $size): \Generator
    {
        static $cursors = 0;

        // What FETCH returns is known for its text: each cursor needs a name of its own.
        $name = 'surus_' . ++$cursors;
        $fetch = "FETCH FORWARD $size FROM $name";
        postgres_query(0, $transaction, "DECLARE $name NO SCROLL CURSOR FOR $sql", $parameters, 2);
        try {
            do {
                $rows = postgres_query(0, $transaction, $fetch, [], 0);
                foreach ($rows as $row) {
                    yield $row;
                }
            } while (count($rows) === $size);
            $isOver = true;
        } finally {
            if (isset($isOver)) {
                postgres_query(0, $transaction, "CLOSE $name", [], 2);
            }
        }
    }

    public static function check(int $size): void
    {
        if ($size < 1 || $size > 100_000) {
            throw at_caller(new \ValueError("A part of a result has 1 to 100000 rows, not $size"));
        }
    }
}
