<?php

declare(strict_types=1);

namespace Surus\Queue\Messenger;

use Symfony\Component\Messenger\Stamp\NonSendableStampInterface;

/** How a message is pushed: `$bus->dispatch($message, [new PushStamp(priority: 5)])`. */
final class PushStamp implements NonSendableStampInterface
{
    /**
     * @param int $priority the highest is first
     * @param ?string $unique while a message with this key waits or runs in the queue, another one is not added
     */
    public function __construct(public readonly int $priority = 0, public readonly ?string $unique = null)
    {
    }
}
