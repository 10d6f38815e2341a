<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * Where one argument of a handler comes from: csrc/http/arguments.c takes it apart at boot.
 *
 * @internal
 */
final class Argument
{
    /* The numbers are csrc/http/arguments.c's. */
    public const REQUEST = 0;
    public const PATH = 1;
    public const QUERY = 2;
    public const HEADER = 3;
    public const COOKIE = 4;
    public const CALL = 5;
    public const CONSTANT = 6;
    public const INPUT = 7;

    public const STRING = 0;
    public const INT = 1;
    public const FLOAT = 2;
    public const BOOL = 3;
    public const LIST = 4;

    /**
     * @param int|string $key position of the path parameter, or the name; the class of input
     * @param int $type of input: where it comes from ({@see \Surus\Schema\Arguments})
     * @param bool $required else `default`, where the request has no value
     * @param ?\Closure $make from the value, or from the request, to the argument; null from a value: it does not
     *     fit. Of input: from the request to what finds services for its rules
     */
    public function __construct(
        public readonly int $source,
        public readonly int|string $key = 0,
        public readonly int $type = self::STRING,
        public readonly bool $required = true,
        public readonly mixed $default = null,
        public readonly ?\Closure $make = null,
    ) {
    }
}
