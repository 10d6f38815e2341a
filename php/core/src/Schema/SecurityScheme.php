<?php

declare(strict_types=1);

namespace Surus\Schema;

/** A middleware that requires credentials, which it describes for documents: {@see OpenApi}. */
interface SecurityScheme
{
    /** The name of the scheme: `bearer`. */
    public function schemeName(): string;

    /**
     * How requests carry the credentials.
     *
     * @return array<string, mixed> OpenAPI's Security Scheme Object, like `['type' => 'http', 'scheme' => 'bearer']`
     */
    public function securityScheme(): array;

    /** True: requests without credentials are allowed, without a user. */
    public function isOptional(): bool;
}
