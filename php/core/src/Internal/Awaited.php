<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\Task;

/**
 * A place among those who wait for a service that others make.
 *
 * @internal
 */
final class Awaited
{
    /** So many seconds another request is waited for: after a fatal error there nobody says that it is over. */
    private const PATIENCE = 5.0;

    /** @var \WeakReference<Making> */
    public readonly \WeakReference $making;

    private readonly int $ticket;

    private ?\Throwable $error = null;

    /** @param bool $isOwn this request makes it */
    public function __construct(
        Making $making,
        public readonly int $request,
        public readonly ?Task $task,
        private readonly bool $isOwn,
    ) {
        $this->making = \WeakReference::create($making);
        $this->ticket = ticket();
    }

    /**
     * Waits until it was made, or is not going to be; false: this takes too long, or nothing can wait here.
     *
     * @throws \Throwable that of its factory in this request
     */
    public function wait(): bool
    {
        $isCalled = false;
        try {
            $isCalled = wait_for_call($this->ticket, $this->isOwn ? \INF : self::PATIENCE);
        } finally {
            Making::leave($this);
        }
        if ($this->error !== null) {
            throw $this->error;
        }

        return $isCalled === true;
    }

    public function call(?\Throwable $error): void
    {
        // Others are not told what this request's data has caused.
        $this->error = $this->isOwn ? $error : null;
        call_ticket($this->ticket);
    }

    public function __destruct()
    {
        Making::leave($this);
    }
}
