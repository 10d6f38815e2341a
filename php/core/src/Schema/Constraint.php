<?php

declare(strict_types=1);

namespace Surus\Schema;

/**
 * What a value must be beyond its type: keywords of JSON Schema, checked before PHP is entered.
 *
 * Attributes that extend this class are rules of this kind. A rule that needs PHP is a {@see Rule}.
 */
abstract class Constraint
{
    /** @param string|null $message said instead of the rule's own; `{min}` and its like are filled in */
    public function __construct(public readonly ?string $message = null)
    {
    }

    /**
     * The shapes of types that it applies to: "string", "integer", "number", "list", "map" or "date".
     *
     * @return list<string>
     */
    abstract public function shapes(): array;

    /** @return array<string, mixed> */
    abstract public function keywords(): array;
}
