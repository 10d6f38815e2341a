<?php

declare(strict_types=1);

namespace Surus\Cache;

use Surus\Internal\SharedMemory;
use Symfony\Component\Cache\Adapter\AbstractAdapter;

use function Surus\Internal\store_clear;
use function Surus\Internal\store_delete;
use function Surus\Internal\store_get;
use function Surus\Internal\store_set;

/** A cache of Symfony in memory that all workers of the server share. */
final class SymfonyAdapter extends AbstractAdapter
{
    private readonly string $prefix;

    public function __construct(string $namespace = '', int $defaultLifetime = 0)
    {
        $this->prefix = SharedMemory::prefix('c', 'symfony');
        parent::__construct($namespace, $defaultLifetime);
    }

    /** @param array<string> $ids */
    protected function doFetch(array $ids): iterable
    {
        $values = [];
        foreach ($ids as $id) {
            $value = store_get($this->prefix . $id, $this);
            if ($value !== $this) {
                $values[$id] = $value;
            }
        }

        return $values;
    }

    protected function doHave(string $id): bool
    {
        return store_get($this->prefix . $id, $this) !== $this;
    }

    protected function doClear(string $namespace): bool
    {
        return store_clear($this->prefix . $namespace);
    }

    /** @param array<string> $ids */
    protected function doDelete(array $ids): bool
    {
        $deleted = true;
        foreach ($ids as $id) {
            $deleted = store_delete($this->prefix . $id) <= SharedMemory::NOT && $deleted;
        }

        return $deleted;
    }

    /**
     * @param array<mixed> $values
     *
     * @return list<array-key> what could not be saved
     */
    protected function doSave(array $values, int $lifetime): array
    {
        $failed = [];
        foreach ($values as $id => $value) {
            if (store_set($this->prefix . $id, $value, $lifetime > 0 ? $lifetime : null) !== SharedMemory::DONE) {
                $failed[] = $id;
            }
        }

        return $failed;
    }
}
