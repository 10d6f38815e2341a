<?php

declare(strict_types=1);

namespace Psr\Log;

/**
 * PSR-3, used if no package declares it. Parameters have types and results none: it is compatible with classes for any
 * version.
 */
interface LoggerInterface
{
    /** @param array<array-key, mixed> $context */
    public function emergency(string|\Stringable $message, array $context = []);

    /** @param array<array-key, mixed> $context */
    public function alert(string|\Stringable $message, array $context = []);

    /** @param array<array-key, mixed> $context */
    public function critical(string|\Stringable $message, array $context = []);

    /** @param array<array-key, mixed> $context */
    public function error(string|\Stringable $message, array $context = []);

    /** @param array<array-key, mixed> $context */
    public function warning(string|\Stringable $message, array $context = []);

    /** @param array<array-key, mixed> $context */
    public function notice(string|\Stringable $message, array $context = []);

    /** @param array<array-key, mixed> $context */
    public function info(string|\Stringable $message, array $context = []);

    /** @param array<array-key, mixed> $context */
    public function debug(string|\Stringable $message, array $context = []);

    /** @param array<array-key, mixed> $context */
    public function log($level, string|\Stringable $message, array $context = []);
}
