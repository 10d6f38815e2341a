<?php

declare(strict_types=1);

namespace Surus\Session;

/** Stores sessions. Ids are hashes: someone who can read the store cannot take over a session. */
interface Store
{
    /** The data; null if there is none, or it is too old. */
    public function read(string $id): ?string;

    /** @param int $seconds for which it is kept */
    public function write(string $id, string $data, int $seconds): void;

    /**
     * Replaces existing data atomically: false if there is none, since the session was ended meanwhile. Otherwise a
     * slow request would undo a logout.
     */
    public function update(string $id, string $data, int $seconds): bool;

    /** A missing session is not an error. */
    public function delete(string $id): void;
}
