<?php

declare(strict_types=1);

namespace Surus\Queue\Messenger;

use Symfony\Component\Messenger\Exception\InvalidArgumentException;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Symfony\Component\Messenger\Transport\TransportFactoryInterface;
use Symfony\Component\Messenger\Transport\TransportInterface;

/**
 * Queues of the server as transports of Symfony Messenger: `surus://NAME`, with `?wait=SECONDS` for `messenger:consume`.
 *
 * Its service has the tag `messenger.transport_factory`, which autoconfiguration gives it.
 */
final class SurusTransportFactory implements TransportFactoryInterface
{
    /** @param array<string, mixed> $options `wait`: seconds that a worker waits for a message at a time, 1 if left out */
    public function createTransport(string $dsn, array $options, SerializerInterface $serializer): TransportInterface
    {
        $parts = \parse_url($dsn);
        $queue = \is_array($parts) ? \rawurldecode($parts['host'] ?? '') : '';
        if ($queue === '') {
            throw new InvalidArgumentException("\"$dsn\" names no queue: it is surus://NAME");
        }
        \parse_str($parts['query'] ?? '', $query);
        $options = $query + $options;
        unset($options['transport_name']);
        $wait = $options['wait'] ?? 1.0;
        unset($options['wait']);
        if ($options !== [] || !\is_numeric($wait) || $wait < 0) {
            $wrong = $options === [] ? 'wait is a number of seconds' : 'it does not know ' . \implode(', ', \array_keys($options));
            throw new InvalidArgumentException("The transport \"$dsn\": $wrong");
        }

        return new SurusTransport($queue, $serializer, (float) $wait);
    }

    /** @param array<string, mixed> $options */
    public function supports(string $dsn, array $options): bool
    {
        return \str_starts_with($dsn, 'surus://');
    }
}
