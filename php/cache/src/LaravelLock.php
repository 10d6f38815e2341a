<?php

declare(strict_types=1);

namespace Surus\Cache;

use Illuminate\Cache\Lock;
use Surus\Internal\SharedMemory;

use function Surus\Internal\store_delete;
use function Surus\Internal\store_get;
use function Surus\Internal\store_set;

/**
 * A lock of Laravel. Taking it and giving it back are one step each, also without a time limit, where Laravel's own looks first and
 * writes then; and it is not removed to make room: two would have it.
 *
 * @internal {@see LaravelStore::lock()}
 */
final class LaravelLock extends Lock
{
    public function __construct(private readonly string $key, string $name, int $seconds, mixed $owner = null)
    {
        parent::__construct($name, $seconds, $owner);
    }

    public function acquire(): bool
    {
        $seconds = $this->seconds > 0 ? $this->seconds : null;

        return SharedMemory::done(store_set($this->key, $this->owner, $seconds, SharedMemory::IF_ABSENT, null, -1, true), $this->name);
    }

    public function release(): bool
    {
        // If it is still the owner's; what expires now is none.
        return SharedMemory::done(store_set($this->key, null, 0.0, SharedMemory::IF_SAME, $this->owner), $this->name);
    }

    public function forceRelease(): void
    {
        store_delete($this->key);
    }

    protected function getCurrentOwner(): mixed
    {
        return store_get($this->key);
    }
}
