<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\Postgres\ConnectionError;
use Surus\Postgres\Error;

/** @internal Exceptions of Surus\Postgres. */
final class PostgresFailure
{
    private const CONNECTION = 1;
    private const USAGE = 2;
    private const BUSY = 3;

    /** @param array{kind: int, position: int, message: string, state: string, detail: string, hint: string, constraint: string, table: string, column: string} $fields */
    public static function throw(array $fields): never
    {
        throw at_caller(match ($fields['kind']) {
            self::CONNECTION, self::BUSY => new ConnectionError($fields['message'], $fields['state']),
            self::USAGE => new \LogicException($fields['message']),
            default => new Error(
                $fields['message'],
                $fields['state'],
                $fields['detail'],
                $fields['hint'],
                $fields['position'],
                $fields['constraint'],
                $fields['table'],
                $fields['column'],
            ),
        });
    }

    public static function notCommitted(): Error
    {
        return new Error('The transaction was rolled back: a statement of it had failed before', '25P02');
    }
}
