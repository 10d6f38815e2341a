<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\CancelledException;
use Surus\OffloadException;
use Surus\TimeoutException;

/**
 * Surus\offload(), where it is called: csrc/app/offload.c waits for the other process, and Offloaded runs there.
 *
 * @internal
 */
final class Offload
{
    /* csrc/bridge.h, surus_offloaded */
    private const CUT = 0;
    private const ANSWERED = 1;
    private const REFUSED = 2;
    private const LATE = 3;

    /** @param array<array-key, mixed> $arguments */
    public static function call(callable $job, array $arguments): mixed
    {
        try {
            $job = Job::of($job);
            $arguments = $job->serialized($arguments);
            return self::result($job->name, self::answer($job, $arguments));
        } catch (\TypeError | \ValueError | OffloadException | TimeoutException | CancelledException $error) {
            throw at_caller($error);
        }
    }

    /** @return array<string, mixed> of Offloaded::answer() */
    private static function answer(Job $job, string $arguments): array
    {
        if (\PHP_SAPI === 'cli') {
            return Offloaded::answer($job->callable, $arguments);
        }
        $token = \bin2hex(\random_bytes(8));
        [$result, $text] = offload($job->name, \serialize([
            'token' => $token,
            'autoload' => self::autoloaders(),
            'file' => $job->file(),
            'job' => $job->callable,
            'arguments' => $arguments,
        ]));
        if ($result === self::CUT) {
            throw new CancelledException();
        }
        if ($result === self::LATE) {
            throw new TimeoutException("Surus\\offload(): $text");
        }
        if ($result === self::REFUSED) {
            throw new OffloadException("Surus\\offload() cannot run $job->name: $text");
        }
        if ($result !== self::ANSWERED) {
            throw new OffloadException("Surus\\offload(): $text");
        }
        if (!\str_starts_with($text, $token)) {
            throw new OffloadException("Surus\\offload(): a fatal error has ended $job->name; it is in the log");
        }
        $answer = \unserialize(\substr($text, \strlen($token)), ['allowed_classes' => false]);
        \assert(\is_array($answer));
        return $answer;
    }

    /** @return list<string> the files that have set Composer's autoloaders up */
    private static function autoloaders(): array
    {
        $files = [];
        if (\class_exists(\Composer\Autoload\ClassLoader::class, false)) {
            foreach (\Composer\Autoload\ClassLoader::getRegisteredLoaders() as $vendor => $_) {
                $files[] = "$vendor/autoload.php";
            }
        }
        return \array_values(\array_filter($files, \is_file(...)));
    }

    /** @param array<string, mixed> $answer */
    private static function result(string $name, array $answer): mixed
    {
        if (isset($answer['value'])) {
            return \unserialize($answer['value']);
        }
        if (isset($answer['thrown'])) {
            throw new OffloadException("$name: {$answer['message']}", $answer['thrown'], $answer['text'], $answer['code']);
        }
        throw new OffloadException("Surus\\offload(): $name {$answer['ended']}");
    }
}
