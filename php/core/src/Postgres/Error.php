<?php

declare(strict_types=1);

namespace Surus\Postgres;

/** The server refuses a statement. It is not sent again. */
final class Error extends \RuntimeException
{
    /**
     * @internal
     * @param string $state SQLSTATE, five characters: "23505" is a violated unique constraint; empty if it was not sent
     * @param string $detail more about it, for people; may have values of rows
     * @param string $hint what to do, for people
     * @param int $position the character of the statement, from 1; 0: not known
     * @param string $constraint its name, if one was violated; table and column likewise
     */
    public function __construct(
        string $message,
        public readonly string $state = '',
        public readonly string $detail = '',
        public readonly string $hint = '',
        public readonly int $position = 0,
        public readonly string $constraint = '',
        public readonly string $table = '',
        public readonly string $column = '',
    ) {
        parent::__construct($message);
    }
}
