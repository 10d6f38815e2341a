<?php

declare(strict_types=1);

namespace Surus\Queue\Laravel;

use Illuminate\Queue\QueueManager;
use Illuminate\Support\ServiceProvider;

/** Adds the queue driver "surus" to a Laravel application: name it among the providers of config/app.php. */
final class QueueServiceProvider extends ServiceProvider
{
    public function register(): void
    {
        $this->callAfterResolving('queue', static function (QueueManager $queues): void {
            $queues->addConnector('surus', static fn (): Connector => new Connector());
        });
    }
}
