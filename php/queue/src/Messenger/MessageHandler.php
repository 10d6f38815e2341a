<?php

declare(strict_types=1);

namespace Surus\Queue\Messenger;

use Psr\Log\LoggerInterface;
use Surus\Job;
use Symfony\Component\EventDispatcher\EventDispatcherInterface;
use Symfony\Component\Messenger\Exception\MessageDecodingFailedException;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Symfony\Component\Messenger\Worker;

/**
 * Runs messages of Messenger in the server, without `messenger:consume`: each in a fiber, hundreds at the same time.
 *
 * ```php
 * $app->queue('default', new MessageHandler($bus, $dispatcher, transport: 'async'));
 * ```
 *
 * Each message goes through a worker of Messenger's own, so that its events are dispatched: the retry strategy and the failure transport
 * are those that are configured. A message whose process dies is delivered again, as often as the queue has `tries`.
 */
final class MessageHandler
{
    /**
     * @param SerializerInterface $serializer that of the transport
     * @param string $transport its name in Messenger's configuration, by which retry strategies and failure transports are chosen
     */
    public function __construct(
        private readonly MessageBusInterface $bus,
        private readonly ?EventDispatcherInterface $dispatcher = null,
        private readonly SerializerInterface $serializer = new PhpSerializer(),
        private readonly string $transport = 'surus',
        private readonly ?LoggerInterface $logger = null,
    ) {
    }

    public function handle(mixed $payload, Job $job): void
    {
        try {
            $receiver = new OneMessage(JobStamp::received($job, $this->serializer));
        } catch (MessageDecodingFailedException $error) {
            $job->fail($error->getMessage());
            return;
        }
        $receiver->worker = new Worker([$this->transport => $receiver], $this->bus, $this->dispatcher, $this->logger);
        $receiver->worker->run(['sleep' => 0]);
        if ($job->ending() === null) {
            throw new \RuntimeException('A listener of Messenger has kept the message from being handled');
        }
    }
}
