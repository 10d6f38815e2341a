<?php

declare(strict_types=1);

namespace Surus\Schema;

/** The length of a text in characters (Unicode scalar values). Both bounds are included. */
#[\Attribute(\Attribute::TARGET_PARAMETER | \Attribute::TARGET_PROPERTY)]
final class Length extends Constraint
{
    /**
     * @param int|null $min characters
     * @param int|null $max characters
     */
    public function __construct(
        public readonly ?int $min = null,
        public readonly ?int $max = null,
        ?string $message = null,
    ) {
        parent::__construct($message);
    }

    public function shapes(): array
    {
        return ['string'];
    }

    public function keywords(): array
    {
        return ['minLength' => $this->min, 'maxLength' => $this->max];
    }
}
