<?php

declare(strict_types=1);

namespace Surus\Postgres;

/**
 * There is no connection, it was lost, or none was free in time. Where the message says that it was lost, the statement may have been
 * executed or not.
 */
final class ConnectionError extends \RuntimeException
{
    /**
     * @internal
     * @param string $state SQLSTATE, if the server has said why; else empty
     */
    public function __construct(string $message, public readonly string $state = '')
    {
        parent::__construct($message);
    }
}
