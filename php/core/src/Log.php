<?php

declare(strict_types=1);

namespace Surus;

use Psr\Log\InvalidArgumentException;
use Psr\Log\LoggerInterface;
use Surus\Internal\LogContext;

use function Surus\Internal\log_enabled;
use function Surus\Internal\write_log;

/**
 * The server's log, for applications (PSR-3): a line with level, channel, message, context and the id of the request.
 *
 * `SURUS_LOG=app=debug` sets which levels are written, `SURUS_LOG_FORMAT=json` makes each line a JSON object. `{name}`
 * in a message is replaced with the context's value; a Throwable under "exception" is written with its place and
 * causes.
 */
final class Log implements LoggerInterface
{
    /* PSR-3's levels are syslog's (RFC 5424). */
    private const LEVELS = [
        'emergency' => 0, 'alert' => 1, 'critical' => 2, 'error' => 3, 'warning' => 4, 'notice' => 5, 'info' => 6, 'debug' => 7,
    ];

    /**
     * @param array<string, mixed> $context of every line
     * @param ?\Closure(string, string, array<array-key, mixed>): void $sink gets level, message and context instead of
     *     the server's log
     */
    public function __construct(
        private readonly string $channel = 'app',
        private readonly array $context = [],
        private readonly ?\Closure $sink = null,
    ) {
    }

    /** A log for another part of the application. */
    public function channel(string $name): self
    {
        return new self($name, $this->context, $this->sink);
    }

    /**
     * The same log with more context in every line.
     *
     * @param array<string, mixed> $context
     */
    public function with(array $context): self
    {
        return new self($this->channel, $context + $this->context, $this->sink);
    }

    public function emergency($message, array $context = []): void
    {
        $this->log('emergency', $message, $context);
    }

    public function alert($message, array $context = []): void
    {
        $this->log('alert', $message, $context);
    }

    public function critical($message, array $context = []): void
    {
        $this->log('critical', $message, $context);
    }

    public function error($message, array $context = []): void
    {
        $this->log('error', $message, $context);
    }

    public function warning($message, array $context = []): void
    {
        $this->log('warning', $message, $context);
    }

    public function notice($message, array $context = []): void
    {
        $this->log('notice', $message, $context);
    }

    public function info($message, array $context = []): void
    {
        $this->log('info', $message, $context);
    }

    public function debug($message, array $context = []): void
    {
        $this->log('debug', $message, $context);
    }

    public function log($level, $message, array $context = []): void
    {
        $severity = is_string($level) ? self::LEVELS[$level] ?? null : null;
        if ($severity === null) {
            throw new InvalidArgumentException('No level of PSR-3: ' . (is_string($level) ? "\"$level\"" : get_debug_type($level)));
        }
        if ($this->sink === null && !log_enabled($severity)) {
            return;
        }
        $context += $this->context;
        $text = LogContext::interpolate((string) $message, $context);
        if ($this->sink !== null) {
            ($this->sink)($level, $text, $context);
        } else {
            write_log($severity, $level, $this->channel, $text, LogContext::json($context));
        }
    }
}
