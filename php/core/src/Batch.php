<?php

declare(strict_types=1);

namespace Surus;

use Surus\Internal\Queues;

/**
 * Jobs that belong together, and jobs that follow them. All of them are kept when {@see push()} returns, or none.
 *
 * ```php
 * Surus\batch('import', $files)->then('report', $day)->catch('alert', $day)->push();
 * ```
 *
 * What follows are jobs, too: a process that pushes does not live as long as a batch may take.
 */
final class Batch
{
    /** @var list<array{queue: string, delay: float, priority: int, length: int}> */
    private array $jobs = [];

    /** @var list<string> */
    private array $payloads = [];

    /** @var array<string, array{string, string}> queue and payload by what they follow */
    private array $after = [];

    private ?string $id = null;

    /**
     * Adds a job ({@see Queue::push()}).
     *
     * @param mixed $payload what the handler gets; it is serialised
     * @param float $delay seconds until it may run
     * @param int $priority the highest is first
     */
    public function add(string $queue, mixed $payload = null, float $delay = 0.0, int $priority = 0): static
    {
        Queues::needName($queue);
        Queues::needDelay('Surus\\Batch::add(): Argument #3', $delay);
        Queues::needPriority('Surus\\Batch::add(): Argument #4', $priority);
        $serialized = Queues::serialized($payload);
        $this->jobs[] = ['queue' => $queue, 'delay' => $delay, 'priority' => $priority, 'length' => \strlen($serialized)];
        $this->payloads[] = $serialized;

        return $this;
    }

    /** A job that is pushed when all jobs are done: also if some had failed, and were done after `surus queue retry`. */
    public function then(string $queue, mixed $payload = null): static
    {
        return $this->follow('then', $queue, $payload);
    }

    /** A job that is pushed when the first one has failed for good. */
    public function catch(string $queue, mixed $payload = null): static
    {
        return $this->follow('catch', $queue, $payload);
    }

    /** A job that is pushed when each one is done or has failed for good. */
    public function finally(string $queue, mixed $payload = null): static
    {
        return $this->follow('finally', $queue, $payload);
    }

    /**
     * @return string the id of the batch, for {@see find()}
     *
     * @throws QueueException if it cannot be kept: the disk or the queue is full, or it has more than 64 MB
     * @throws \LogicException if it has no jobs, or was pushed already
     */
    public function push(): string
    {
        if ($this->jobs === [] || $this->id !== null) {
            throw Internal\at_caller(new \LogicException($this->id === null ? 'A batch needs a job' : "The batch $this->id was pushed already"));
        }
        $head = ['jobs' => $this->jobs];
        $payloads = $this->payloads;
        // The server takes their payloads in this order.
        foreach (['then', 'catch', 'finally'] as $when) {
            [$queue, $payload] = $this->after[$when] ?? [null, null];
            if ($queue === null) {
                continue;
            }
            $head[$when] = ['queue' => $queue, 'length' => \strlen($payload)];
            $payloads[] = $payload;
        }
        [$pushed] = Queues::ask('batch', $head, \implode('', $payloads));

        return $this->id = $pushed['id'];
    }

    /**
     * How far a batch is.
     *
     * @return array{total: int, done: int, failed: int, forgotten: int}|null null: all of its jobs are done or forgotten
     */
    public static function find(string $id): ?array
    {
        [$batches] = Queues::ask('batches', ['id' => $id]);
        foreach ($batches as ['total' => $total, 'done' => $done, 'failed' => $failed, 'forgotten' => $forgotten]) {
            return ['total' => $total, 'done' => $done, 'failed' => $failed, 'forgotten' => $forgotten];
        }

        return null;
    }

    private function follow(string $when, string $queue, mixed $payload): static
    {
        Queues::needName($queue);
        $this->after[$when] = [$queue, Queues::serialized($payload)];

        return $this;
    }
}
