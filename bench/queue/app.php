<?php

/** Pushes empty jobs, and runs them where RUN says how many at a time. */

declare(strict_types=1);

use Surus\App;

use function Surus\all;
use function Surus\dispatch;

const TASKS = 200;

$app = new App();
$app->get('/push/{count:int}', static function (int $count): array {
    $begun = microtime(true);
    $push = static function () use ($count): void {
        for ($i = 0; $i < $count / TASKS; $i++) {
            dispatch('empty');
        }
    };
    all(array_fill(0, TASKS, $push));

    return ['pushed' => intdiv($count, TASKS) * TASKS, 'seconds' => microtime(true) - $begun];
});
if (getenv('RUN') !== false) {
    $app->queue('empty', static fn () => null, concurrency: (int) getenv('RUN'));
}

return $app;
