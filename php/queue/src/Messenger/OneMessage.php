<?php

declare(strict_types=1);

namespace Surus\Queue\Messenger;

use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Transport\Receiver\ReceiverInterface;
use Symfony\Component\Messenger\Worker;

/**
 * A receiver with one message. Then it stops its worker.
 *
 * @internal
 */
final class OneMessage implements ReceiverInterface
{
    public ?Worker $worker = null;

    public function __construct(private ?Envelope $envelope)
    {
    }

    /** @return iterable<Envelope> */
    public function get(): iterable
    {
        $envelope = $this->envelope;
        $this->envelope = null;
        if ($envelope === null) {
            $this->worker?->stop();
        }

        return $envelope === null ? [] : [$envelope];
    }

    public function ack(Envelope $envelope): void
    {
        JobStamp::of($envelope)->done();
    }

    public function reject(Envelope $envelope): void
    {
        JobStamp::of($envelope)->done();
    }
}
