<?php

declare(strict_types=1);

namespace Surus\Schema;

/** An e-mail address. */
#[\Attribute(\Attribute::TARGET_PARAMETER | \Attribute::TARGET_PROPERTY)]
final class Email extends Constraint
{
    public function __construct(
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
        return ['format' => 'email'];
    }
}
