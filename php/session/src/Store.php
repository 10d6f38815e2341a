<?php

declare(strict_types=1);

namespace Surus\Session;

/** Where sessions are. Ids are hashes: who can read the store cannot be a visitor. */
interface Store
{
    /** The data; null if there is none, or it is too old. */
    public function read(string $id): ?string;

    /** @param int $seconds how long it is kept */
    public function write(string $id, string $data, int $seconds): void;

    /**
     * Writes in place of what is there, in one step: false if nothing is, since the session was ended meanwhile. Else a request
     * that was slow would undo a logout.
     */
    public function update(string $id, string $data, int $seconds): bool;

    /** One that is not there is no error. */
    public function delete(string $id): void;
}
