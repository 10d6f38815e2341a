<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * Where one argument of a handler comes from: csrc/http/arguments.c reads it at boot.
 *
 * @internal
 */
final class Argument
{
    /* The same numbers as in csrc/http/arguments.c. */
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
     * @param int $type for input: its source ({@see \Surus\Schema\Arguments})
     * @param bool $required if false, `default` is used when the request has no value
     * @param ?\Closure $make makes the argument from the value or the request; returns null for an invalid value. For
     *     input: makes the function that finds services for its rules, from the request
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
