<?php

declare(strict_types=1);

namespace Surus\Queue\Messenger;

use Surus\Queue;
use Surus\QueueException;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Exception\MessageDecodingFailedException;
use Symfony\Component\Messenger\Exception\TransportException;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Stamp\TransportMessageIdStamp;
use Symfony\Component\Messenger\Transport\Receiver\MessageCountAwareInterface;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Symfony\Component\Messenger\Transport\TransportInterface;

/**
 * A queue of the server as a transport. Messages that are sent are on disk. Who runs them is {@see MessageHandler}, in the server, or
 * `messenger:consume`, as a program beside it; when that dies, its message goes to another one at once.
 */
final class SurusTransport implements TransportInterface, MessageCountAwareInterface
{
    private readonly Queue $queue;

    /** @param float $wait seconds that {@see get()} waits for a message */
    public function __construct(string $queue, private readonly SerializerInterface $serializer, private readonly float $wait = 1.0)
    {
        $this->queue = new Queue($queue);
    }

    /** @throws TransportException if the message cannot be kept */
    public function send(Envelope $envelope): Envelope
    {
        $delay = $envelope->last(DelayStamp::class);
        $how = $envelope->last(PushStamp::class) ?? new PushStamp();
        $payload = $this->serializer->encode($envelope);
        try {
            $id = $this->queue->push($payload, \max(0, $delay?->getDelay() ?? 0) / 1000, $how->priority, $how->unique);
        } catch (QueueException $error) {
            throw new TransportException($error->getMessage(), 0, $error);
        }

        return $envelope->with(new TransportMessageIdStamp($id));
    }

    /** @return iterable<Envelope> one, or none */
    public function get(): iterable
    {
        try {
            $job = $this->queue->take($this->wait);
        } catch (QueueException $error) {
            throw new TransportException($error->getMessage(), 0, $error);
        }
        if ($job === null) {
            return [];
        }
        try {
            return [JobStamp::received($job, $this->serializer)];
        } catch (MessageDecodingFailedException $error) {
            $job->fail($error->getMessage());
            throw $error;
        }
    }

    public function ack(Envelope $envelope): void
    {
        JobStamp::of($envelope)->done();
    }

    /** Messenger has sent the message again, if it is to run again, or to its failure transport. */
    public function reject(Envelope $envelope): void
    {
        JobStamp::of($envelope)->done();
    }

    public function getMessageCount(): int
    {
        $counts = $this->queue->counts();

        return $counts['waiting'] + $counts['delayed'];
    }
}
