<?php

declare(strict_types=1);

namespace Surus\Queue\Messenger;

use Surus\Job;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Exception\LogicException;
use Symfony\Component\Messenger\Exception\MessageDecodingFailedException;
use Symfony\Component\Messenger\Stamp\NonSendableStampInterface;
use Symfony\Component\Messenger\Stamp\TransportMessageIdStamp;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;

/** The job that a received message came with. */
final class JobStamp implements NonSendableStampInterface
{
    public function __construct(public readonly Job $job)
    {
    }

    /** @throws MessageDecodingFailedException if the job is no message */
    public static function received(Job $job, SerializerInterface $serializer): Envelope
    {
        $payload = $job->payload;
        if (!\is_array($payload) || !\is_string($payload['body'] ?? null)) {
            throw new MessageDecodingFailedException("The job $job->id of the queue \"$job->queue\" is no message of Messenger");
        }

        return $serializer->decode($payload)->with(new self($job), new TransportMessageIdStamp($job->id));
    }

    public static function of(Envelope $envelope): Job
    {
        $stamp = $envelope->last(self::class);

        return $stamp instanceof self ? $stamp->job : throw new LogicException('The message was not received from a queue of the server');
    }
}
