<?php

declare(strict_types=1);

namespace Surus\Schema;

/**
 * The value of a field that a client has not sent, if null has another meaning: for PATCH.
 *
 *     public readonly string|null|Undefined $phone = Undefined::Value
 *
 * Clients cannot send it, and no rule is checked for it.
 */
enum Undefined
{
    case Value;

    /**
     * The properties of an object that the client has sent.
     *
     * @return array<string, mixed> its public properties by name, without those that are undefined
     */
    public static function without(object $input): array
    {
        return array_filter(get_object_vars($input), static fn (mixed $value): bool => $value !== self::Value);
    }
}
