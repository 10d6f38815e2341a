<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\BootError;
use Surus\CancelledException;
use Surus\Container;
use Surus\Job;
use Surus\Log;
use Surus\QueueException;

/**
 * What queues say to the server: csrc/app/queue.c waits for the answers, and runs the closure that serve() has passed.
 *
 * @internal
 */
final class Queues
{
    /* csrc/bridge.h, surus_queue_answer */
    private const CUT = 0;
    private const ANSWERED = 1;

    /** Runs of a job that was taken and whose payload cannot be read. */
    private const TRIES = 3;

    /**
     * @param array<string, mixed> $head
     *
     * @return array{mixed, string}
     */
    public static function ask(string $verb, array $head, string $payload = ''): array
    {
        [$result, $text, $bytes] = queue($verb, \json_encode((object) $head, \JSON_THROW_ON_ERROR | \JSON_INVALID_UTF8_SUBSTITUTE), $payload);
        if ($result === self::CUT) {
            throw at_caller(new CancelledException());
        }
        if ($result !== self::ANSWERED) {
            throw at_caller(new QueueException($text));
        }

        return [$text === '' ? null : \json_decode($text, true, 64, \JSON_THROW_ON_ERROR), $bytes];
    }

    /** @param array<string, mixed> $job */
    public static function job(array $job, string $payload, bool $isTaken, bool $raw = false): Job
    {
        return new Job($job['id'], $job['queue'], $raw ? $payload : \unserialize($payload), $job['attempt'], $job['pushed'] / 1000, $isTaken);
    }

    /**
     * A job that was taken; null if its payload cannot be read: then this was a run that has failed.
     *
     * @param array<string, mixed> $head
     */
    public static function taken(array $head, string $payload, bool $raw): ?Job
    {
        try {
            return self::job($head, $payload, true, $raw);
        } catch (CancelledException $error) {
            throw $error;
        } catch (\Throwable $error) {
            self::note($head, $error);
            $why = self::reason($error);
            $attempt = $head['attempt'];
            $ending = $attempt < self::TRIES ? ['again' => 2.0 ** ($attempt - 1), 'error' => $why] : ['failed' => $why];
            self::ask('end', ['id' => $head['id']] + $ending);

            return null;
        }
    }

    public static function serialized(mixed $payload): string
    {
        if (\is_resource($payload)) {
            throw at_caller(new \TypeError('The payload of a job cannot be kept: it is a resource'));
        }
        try {
            return \serialize($payload);
        } catch (\Throwable $error) {
            throw at_caller(new \TypeError('The payload of a job cannot be kept: ' . $error->getMessage(), 0, $error));
        }
    }

    public static function needName(string $name): void
    {
        if (\preg_match('/^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}$/D', $name) !== 1) {
            throw at_caller(new \ValueError("\"$name\" is no name of a queue: it has letters, digits and _.:- only"));
        }
    }

    public static function needDelay(string $argument, float $seconds): void
    {
        if (!($seconds >= 0 && $seconds < 1e10)) {
            throw at_caller(new \ValueError("$argument must be a time from 0 on, $seconds given"));
        }
    }

    public static function needPriority(string $argument, int $priority): void
    {
        if ($priority !== \max(-2_147_483_648, \min(2_147_483_647, $priority))) {
            throw at_caller(new \ValueError("$argument (\$priority) must fit in 32 bits, $priority given"));
        }
    }

    /**
     * So many in so many seconds.
     *
     * @return array{int, float}|null null: it is no rate
     */
    public static function rate(string $text): ?array
    {
        if (\preg_match('~^([1-9][0-9]{0,8})/([1-9][0-9]{0,4})?(s|m|h)$~D', $text, $parts) !== 1) {
            return null;
        }

        return [(int) $parts[1], (float) ($parts[2] ?: 1) * ['s' => 1, 'm' => 60, 'h' => 3600][$parts[3]]];
    }

    /**
     * At boot.
     *
     * @param array<string, array{array<string, mixed>, mixed, string}> $queues by name: options, handler, place
     */
    public static function serve(array $queues, Container $container): void
    {
        if ($queues === []) {
            return;
        }
        $handlers = [];
        foreach ($queues as $name => [, $handler, $origin]) {
            $handlers[$name] = self::resolver($handler, $container, $origin);
        }
        queue_serve(\json_encode(\array_column($queues, 0), \JSON_THROW_ON_ERROR), static function () use ($handlers): void {
            [$head, $payload] = queue_job();
            $job = \json_decode($head, true, 8, \JSON_THROW_ON_ERROR);
            queue_end(\json_encode(self::run($handlers[$job['queue']] ?? null, $job, $payload), \JSON_THROW_ON_ERROR | \JSON_INVALID_UTF8_SUBSTITUTE));
        });
    }

    /**
     * @param ?\Closure(): callable $handler
     * @param array<string, mixed> $head
     *
     * @return array<string, mixed>
     */
    private static function run(?\Closure $handler, array $head, string $payload): array
    {
        if ($handler === null) {
            return ['again' => 1.0];
        }
        try {
            $job = self::job($head, $payload, false);
            $handler()($job->payload, $job);

            return $job->ending() ?? ['done' => true];
        } catch (\Throwable $error) {
            self::note($head, $error);

            return ['error' => self::reason($error)];
        }
    }

    /** @param array<string, mixed> $head */
    private static function note(array $head, \Throwable $error): void
    {
        (new Log('queue'))->error('A job of {queue} has failed: {job}, attempt {attempt}', [
            'queue' => $head['queue'], 'job' => $head['id'], 'attempt' => $head['attempt'], 'exception' => $error,
        ]);
    }

    private static function reason(\Throwable $error): string
    {
        return $error::class . ': ' . \substr($error->getMessage(), 0, 1000) . " at {$error->getFile()}:{$error->getLine()}";
    }

    /** @return \Closure(): callable */
    private static function resolver(mixed $handler, Container $container, string $origin): \Closure
    {
        if (\is_string($handler) && \class_exists($handler)) {
            $handler = [$handler, \method_exists($handler, 'handle') ? 'handle' : '__invoke'];
        }
        if (\is_object($handler) && !\is_callable($handler) && \method_exists($handler, 'handle')) {
            $handler = $handler->handle(...);
        }
        $named = \is_array($handler) && \is_string($handler[0] ?? null) && \is_string($handler[1] ?? null)
            && \method_exists($handler[0], $handler[1]) && !(new \ReflectionMethod($handler[0], $handler[1]))->isStatic();
        if (!$named) {
            return \is_callable($handler)
                ? static fn (): callable => $handler
                : throw new BootError("$origin: the handler of a queue is a callable, or a class or an object with the method handle or __invoke");
        }
        [$class, $method] = $handler;
        if ($container->isScoped($class)) {
            throw new BootError("$origin: the handler $class belongs to a request, and a job has none");
        }

        return static fn (): callable => [$container->get($class), $method];
    }
}
