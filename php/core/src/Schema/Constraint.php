<?php

declare(strict_types=1);

namespace Surus\Schema;

/**
 * A rule for a value besides its type: keywords of JSON Schema, checked before PHP is entered.
 *
 * Attributes that extend this class are such rules. A rule that needs PHP is a {@see Rule}.
 */
abstract class Constraint
{
    /** @param string|null $message replaces the rule's message; placeholders like `{min}` are filled in */
    public function __construct(public readonly ?string $message = null)
    {
    }

    /**
     * The kinds of types that it applies to: "string", "integer", "number", "list", "map" or "date".
     *
     * @return list<string>
     */
    abstract public function shapes(): array;

    /** @return array<string, mixed> */
    abstract public function keywords(): array;
}
