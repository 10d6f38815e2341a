<?php

declare(strict_types=1);

namespace Surus\Schema;

/** A middleware that asks for credentials says so in documents: {@see OpenApi}. */
interface SecurityScheme
{
    /** A name for it: `bearer`. */
    public function schemeName(): string;

    /**
     * How requests carry the credentials.
     *
     * @return array<string, mixed> OpenAPI's Security Scheme Object, as `['type' => 'http', 'scheme' => 'bearer']`
     */
    public function securityScheme(): array;

    /** True: requests without credentials go on, as nobody's. */
    public function isOptional(): bool;
}
