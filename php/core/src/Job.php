<?php

declare(strict_types=1);

namespace Surus;

use Surus\Internal\Queues;

/**
 * A job of a queue, for its handler, or for who has taken it ({@see Queue::take()}).
 *
 * A handler that returns has done it; an exception makes it run again until it has had its tries.
 */
final class Job
{
    /** @var array<string, mixed>|null how it has ended */
    private ?array $ending = null;

    /** @internal */
    public function __construct(
        /** 32 hexadecimal digits. */
        public readonly string $id,
        public readonly string $queue,
        public readonly mixed $payload,
        /** Its runs, with this one. */
        public readonly int $attempt,
        /** Seconds since 1970. */
        public readonly float $pushedAt,
        private readonly bool $isTaken = false,
    ) {
    }

    /** It is done. */
    public function done(): void
    {
        $this->end(['done' => true]);
    }

    /** It runs again, after these seconds. */
    public function retry(float $delay = 0.0, string $why = ''): void
    {
        Queues::needDelay('Surus\\Job::retry(): Argument #1', $delay);
        $this->end(['again' => $delay] + ($why === '' ? [] : ['error' => $why]));
    }

    /** It has failed for good: it is kept among the failed jobs (`surus queue failed`). */
    public function fail(string $why): void
    {
        $this->end(['failed' => $why]);
    }

    /**
     * How much of it is done: `surus queue list` shows it while the job runs. The next run begins anew.
     *
     * @param float $done from 0 to 1
     */
    public function progress(float $done): void
    {
        if (!($done >= 0 && $done <= 1)) {
            throw Internal\at_caller(new \ValueError("Surus\\Job::progress(): Argument #1 (\$done) must be from 0 to 1, $done given"));
        }
        Queues::ask('progress', ['id' => $this->id, 'done' => $done]);
    }

    /** @internal @return array<string, mixed>|null */
    public function ending(): ?array
    {
        return $this->ending;
    }

    /** @param array<string, mixed> $ending */
    private function end(array $ending): void
    {
        if ($this->ending !== null) {
            throw new \LogicException("The end of the job $this->id was said already");
        }
        $this->ending = $ending;
        if ($this->isTaken) {
            Queues::ask('end', ['id' => $this->id] + $ending);
        }
    }
}
