<?php

declare(strict_types=1);

namespace Surus\Schema;

/** A date (2024-12-31), a date and time with an offset, or a time, as defined by RFC 3339. */
#[\Attribute(\Attribute::TARGET_PARAMETER | \Attribute::TARGET_PROPERTY)]
final class Date extends Constraint
{
    public const DATE = 'date';
    public const DATE_TIME = 'date-time';
    public const TIME = 'time';

    /** @param self::DATE|self::DATE_TIME|self::TIME $format */
    public function __construct(
        public readonly string $format = self::DATE,
        ?string $message = null,
    ) {
        parent::__construct($message);
    }

    public function shapes(): array
    {
        return ['string', 'date'];
    }

    public function keywords(): array
    {
        return ['format' => $this->format];
    }
}
