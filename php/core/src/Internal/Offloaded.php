<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\Log;

/**
 * Surus\offload(), in the process that runs the job: csrc/app/offload.c calls main() in place of a script.
 *
 * What the job prints is logged. Its answer is what the callback of an output buffer returns that the job cannot end: it comes
 * out however the job ends, and nothing else does.
 *
 * @internal
 */
final class Offloaded
{
    private static string $token = '';

    private static string $name = '';

    /** @var array<string, mixed>|null */
    private static ?array $answer = null;

    public static function main(): void
    {
        $call = \unserialize((string) \file_get_contents('php://input'), ['allowed_classes' => false]);
        \assert(\is_array($call));
        self::$token = $call['token'];
        $job = $call['job'];
        self::$name = \is_array($job) ? "$job[0]::$job[1]" : $job;
        \ob_start(self::finish(...), 0, 0);
        try {
            self::load($call['autoload'], $call['file'], $job);
        } catch (\Throwable $error) {
            self::$answer = self::thrown($error);
            return;
        }
        self::$answer = self::answer($job, $call['arguments']);
    }

    /**
     * @param list<string> $autoloaders
     * @param string|array{class-string, string} $job
     */
    private static function load(array $autoloaders, ?string $file, string|array $job): void
    {
        foreach ($autoloaders as $autoloader) {
            self::include($autoloader);
        }
        $is_there = \is_array($job) ? \class_exists($job[0]) : \function_exists($job);
        if (!$is_there && $file !== null) {
            self::include($file);
        }
    }

    private static function include(string $path): void
    {
        (static function () use ($path): void {
            require_once $path;
        })();
    }

    /**
     * @param string|array{class-string, string} $job
     * @param string $arguments serialized
     * @return array<string, mixed> what Offload::result() takes apart
     */
    public static function answer(string|array $job, string $arguments): array
    {
        try {
            if (!\is_callable($job)) {
                return ['ended' => 'is not declared in the process of the job; a file that declares it must not depend on others'];
            }
            $value = $job(...\unserialize($arguments));
        } catch (\Throwable $error) {
            return self::thrown($error);
        }
        try {
            return ['value' => \serialize($value)];
        } catch (\Throwable $error) {
            return ['ended' => 'has a result that cannot leave its process: ' . $error->getMessage()];
        }
    }

    /** @return array<string, mixed> */
    private static function thrown(\Throwable $error): array
    {
        return [
            'thrown' => $error::class,
            'message' => $error->getMessage(),
            'code' => \is_int($error->getCode()) ? $error->getCode() : 0,
            'text' => (string) $error,
        ];
    }

    /** The last that the process does for the job. */
    private static function finish(string $printed): string
    {
        if ($printed !== '') {
            (new Log('offload'))->notice('{job} has printed: {output}', ['job' => self::$name, 'output' => \substr($printed, 0, 4096)]);
        }
        $error = \error_get_last();
        $is_fatal = $error !== null && ($error['type'] & (\E_ERROR | \E_CORE_ERROR | \E_COMPILE_ERROR | \E_USER_ERROR)) !== 0;
        \http_response_code(200);
        return self::$token . \serialize(self::$answer ?? [
            'ended' => $is_fatal
                ? "has ended with a fatal error: {$error['message']} in {$error['file']}:{$error['line']}"
                : 'has ended with exit(), without a result',
        ]);
    }
}
