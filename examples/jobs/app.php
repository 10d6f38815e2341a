<?php

/**
 * Orders that are confirmed at once, and handled in the background: a queue with retries, a cron, and a page that shows
 * what waits. Try: curl -X POST localhost:8080/orders; surus queue
 */

declare(strict_types=1);

use Surus\App;
use Surus\Job;
use Surus\Log;
use Surus\Queue;

use function Surus\cron;
use function Surus\dispatch;

$app = new App();
$log = new Log('orders');

$app->post('/orders', static function (): array {
    $number = random_int(1000, 9999);

    return ['order' => $number, 'job' => dispatch('orders', ['number' => $number], unique: "order-$number")];
});

$app->get('/', static fn (): array => (new Queue('orders'))->counts());

$app->queue('orders', static function (array $order, Job $job) use ($log): void {
    sleep(1); // a slow service: other jobs and requests go on
    if ($job->attempt === 1 && $order['number'] % 3 === 0) {
        throw new RuntimeException('The service is busy'); // it runs again after a second
    }
    $log->info('Order {number} is handled', $order);
}, concurrency: 50, tries: 5, timeout: 10.0);

// Once a minute, in one worker of the server; the key keeps a slow one from piling up.
cron('* * * * *', static function (): void {
    dispatch('orders', ['number' => 0], unique: 'nightly');
});

return $app;
