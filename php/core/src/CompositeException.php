<?php

declare(strict_types=1);

namespace Surus;

/** All tasks of Surus\any() have failed. */
final class CompositeException extends \RuntimeException
{
    /**
     * @internal Surus\any() throws it
     * @param non-empty-array<array-key, \Throwable> $reasons
     */
    public function __construct(private readonly array $reasons)
    {
        $texts = [];
        foreach ($reasons as $key => $reason) {
            $texts[] = $key . ': ' . $reason::class . ': ' . $reason->getMessage();
        }
        parent::__construct(\count($reasons) . ' tasks have failed: ' . \implode('; ', $texts));
    }

    /**
     * Why each task has failed, with the keys of the tasks.
     *
     * @return non-empty-array<array-key, \Throwable>
     */
    public function getReasons(): array
    {
        return $this->reasons;
    }
}
