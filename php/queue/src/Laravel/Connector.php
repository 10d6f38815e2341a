<?php

declare(strict_types=1);

namespace Surus\Queue\Laravel;

use Illuminate\Queue\Connectors\ConnectorInterface;

/** Makes the connection that `'driver' => 'surus'` in config/queue.php asks for. */
final class Connector implements ConnectorInterface
{
    /** @param array<string, mixed> $config `queue`: its default name; `block_for`: seconds that a worker waits for a job at a time */
    public function connect(array $config): LaravelQueue
    {
        return new LaravelQueue(
            $config['queue'] ?? 'default',
            (float) ($config['block_for'] ?? 5),
            (bool) ($config['after_commit'] ?? false),
        );
    }
}
