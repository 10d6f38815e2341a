<?php

declare(strict_types=1);

namespace Surus\Cache;

use Illuminate\Cache\RetrievesMultipleKeys;
use Illuminate\Cache\TaggableStore;
use Illuminate\Contracts\Cache\LockProvider;
use Surus\Internal\SharedMemory;
use Surus\StoreException;

use function Surus\Internal\store_clear;
use function Surus\Internal\store_delete;
use function Surus\Internal\store_get;
use function Surus\Internal\store_set;
use function Surus\Internal\store_step;

/** A cache store of Laravel, driver `surus`, in memory that all workers of the server share; with atomic locks. */
final class LaravelStore extends TaggableStore implements LockProvider
{
    use RetrievesMultipleKeys;

    private readonly string $space;

    public function __construct(private readonly string $prefix = '')
    {
        $this->space = SharedMemory::prefix('c', 'laravel') . $prefix;
    }

    public function get($key): mixed
    {
        return store_get($this->space . $key);
    }

    public function put($key, $value, $seconds): bool
    {
        return store_set($this->space . $key, $value, $seconds) === SharedMemory::DONE;
    }

    /** Stores a value if there is none. */
    public function add(string $key, mixed $value, int $seconds): bool
    {
        return store_set($this->space . $key, $value, $seconds > 0 ? $seconds : null, SharedMemory::IF_ABSENT) === SharedMemory::DONE;
    }

    public function increment($key, $value = 1): int|bool
    {
        $sum = 0;
        try {
            SharedMemory::done(store_step($this->space . $key, (int) $value, 0, null, false, $sum), $key);
        } catch (StoreException) {
            return false;
        }

        return $sum;
    }

    public function decrement($key, $value = 1): int|bool
    {
        return $this->increment($key, -(int) $value);
    }

    public function forever($key, $value): bool
    {
        return store_set($this->space . $key, $value) === SharedMemory::DONE;
    }

    public function forget($key): bool
    {
        return store_delete($this->space . $key) === SharedMemory::DONE;
    }

    /** @param int $seconds 0: no limit */
    public function lock($name, $seconds = 0, $owner = null): LaravelLock
    {
        return new LaravelLock($this->space . $name, (string) $name, (int) $seconds, $owner);
    }

    public function restoreLock($name, $owner): LaravelLock
    {
        return $this->lock($name, 0, $owner);
    }

    public function flush(): bool
    {
        return store_clear($this->space);
    }

    public function getPrefix(): string
    {
        return $this->prefix;
    }
}
