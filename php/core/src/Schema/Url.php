<?php

declare(strict_types=1);

namespace Surus\Schema;

/** An absolute URL with one of these schemes; by default http and https. */
#[\Attribute(\Attribute::TARGET_PARAMETER | \Attribute::TARGET_PROPERTY)]
final class Url extends Constraint
{
    /** @param list<string> $schemes */
    public function __construct(
        public readonly array $schemes = [],
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
        return ['format' => 'uri', 'schemes' => $this->schemes];
    }
}
