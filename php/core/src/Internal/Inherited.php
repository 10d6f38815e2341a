<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * What a group adds to its routes.
 *
 * @internal
 */
final class Inherited
{
    /** @param list<callable|object|string> $middleware */
    public function __construct(
        public readonly string $prefix,
        public readonly string $namePrefix,
        public readonly string $host,
        public readonly array $middleware,
        public readonly ?float $timeout,
    ) {
    }

    /** @param list<callable|object|string> $middleware */
    public function below(string $prefix, string $namePrefix, string $host, array $middleware, ?float $timeout): self
    {
        return new self(
            $this->prefix . $prefix,
            $this->namePrefix . $namePrefix,
            $host === '' ? $this->host : $host,
            [...$this->middleware, ...$middleware],
            $timeout ?? $this->timeout,
        );
    }
}
