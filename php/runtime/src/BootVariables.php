<?php

declare(strict_types=1);

namespace Surus\Runtime;

/**
 * What the boot has put into `$_SERVER` and `$_ENV`, for instance from `.env`: requests have fresh ones.
 *
 * @internal
 */
final class BootVariables
{
    /** Of the request that there is not while the script boots, as patterns of their names. */
    private const OF_REQUESTS = '/^(?:HTTP_|REQUEST_|REMOTE_|SERVER_|CONTENT_|SCRIPT_|PATH_|PHP_|DOCUMENT_|REDIRECT_|(?:QUERY_STRING|AUTH_TYPE|GATEWAY_INTERFACE|HTTPS)$)/';

    /** @var array<string, mixed> */
    private readonly array $server;

    /** @var array<string, mixed> */
    private readonly array $env;

    public function __construct()
    {
        $this->server = array_filter($_SERVER, self::isOfBoot(...), ARRAY_FILTER_USE_KEY);
        $this->env = array_filter($_ENV, self::isOfBoot(...), ARRAY_FILTER_USE_KEY);
    }

    /** Puts them into the variables of the current request, which win. */
    public function restore(): void
    {
        $_SERVER += $this->server;
        $_ENV += $this->env;
    }

    private static function isOfBoot(int|string $name): bool
    {
        return preg_match(self::OF_REQUESTS, (string) $name) === 0;
    }
}
