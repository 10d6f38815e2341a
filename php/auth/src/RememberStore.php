<?php

declare(strict_types=1);

namespace Surus\Auth;

/** Where {@see RememberMe} keeps its series: a table of the application. */
interface RememberStore
{
    /** @return array{id: string|int, hash: string, until: int}|null */
    public function find(string $series): ?array;

    /**
     * In place of what the series had.
     *
     * @param int $until Unix time
     */
    public function save(string $series, string|int $id, string $hash, int $until): void;

    /** One that is not there is no error. */
    public function delete(string $series): void;
}
