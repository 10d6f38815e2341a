<?php

declare(strict_types=1);

namespace Surus\Schema;

/**
 * The value of what a client has not sent, where null is a value of its own: for PATCH.
 *
 *     public readonly string|null|Undefined $phone = Undefined::Value
 *
 * It is never sent itself, and no rule is asked about it.
 */
enum Undefined
{
    case Value;

    /**
     * What the client has sent of an object.
     *
     * @return array<string, mixed> its public properties by name, without those that are undefined
     */
    public static function without(object $input): array
    {
        return array_filter(get_object_vars($input), static fn (mixed $value): bool => $value !== self::Value);
    }
}
