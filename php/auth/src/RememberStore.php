<?php

declare(strict_types=1);

namespace Surus\Auth;

/** Stores the series of {@see RememberMe}: a table of the application. */
interface RememberStore
{
    /** @return array{id: string|int, hash: string, until: int}|null */
    public function find(string $series): ?array;

    /**
     * Stores the series, replacing its old data.
     *
     * @param int $until Unix time
     */
    public function save(string $series, string|int $id, string $hash, int $until): void;

    /** A missing series is not an error. */
    public function delete(string $series): void;
}
