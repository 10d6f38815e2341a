<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * The context of a log line, as text and as JSON. No value of a caller makes it fail, or unlimited in size.
 *
 * @internal
 */
final class LogContext
{
    private const MAX_DEPTH = 6;
    private const MAX_ITEMS = 100;
    private const MAX_TEXT = 8192;
    private const MAX_BYTES = 65536;
    private const FLAGS = JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR;

    /** @param array<array-key, mixed> $context */
    public static function interpolate(string $message, array $context): string
    {
        if (!str_contains($message, '{')) {
            return $message;
        }
        $values = [];
        foreach ($context as $name => $value) {
            if (str_contains($message, '{' . $name . '}')) {
                $values['{' . $name . '}'] = self::text($value);
            }
        }

        return strtr($message, $values);
    }

    /**
     * A JSON object; "" for an empty context.
     *
     * @param array<array-key, mixed> $context
     */
    public static function json(array $context): string
    {
        if ($context === []) {
            return '';
        }
        $json = (string) json_encode((object) self::plain($context, 0), self::FLAGS);

        return strlen($json) <= self::MAX_BYTES ? $json : json_encode([
            'left_out' => 'a context of ' . strlen($json) . ' bytes',
        ], JSON_THROW_ON_ERROR);
    }

    private static function text(mixed $value): string
    {
        $value = self::plain($value, self::MAX_DEPTH - 1);

        return is_string($value) ? $value : (string) json_encode($value, self::FLAGS);
    }

    private static function plain(mixed $value, int $depth): mixed
    {
        if (is_string($value)) {
            return strlen($value) <= self::MAX_TEXT ? $value : substr($value, 0, self::MAX_TEXT) . '…';
        }
        if ($value === null || is_scalar($value)) {
            return is_float($value) && !is_finite($value) ? (string) $value : $value;
        }
        if (is_array($value)) {
            return self::items($value, $depth);
        }

        return is_object($value) ? self::object($value, $depth) : get_debug_type($value);
    }

    /**
     * @param array<array-key, mixed> $items
     *
     * @return array<array-key, mixed>|string
     */
    private static function items(array $items, int $depth): array|string
    {
        if ($depth >= self::MAX_DEPTH) {
            return '[…]';
        }
        $plain = [];
        foreach ($items as $key => $item) {
            if (count($plain) === self::MAX_ITEMS) {
                $plain['…'] = count($items) - self::MAX_ITEMS . ' more';
                break;
            }
            $plain[$key] = self::plain($item, $depth + 1);
        }

        return $plain;
    }

    private static function object(object $value, int $depth): mixed
    {
        try {
            return match (true) {
                $value instanceof \Throwable => self::exception($value, $depth),
                $value instanceof \DateTimeInterface => $value->format(\DateTimeInterface::RFC3339_EXTENDED),
                $value instanceof \BackedEnum => $value->value,
                $value instanceof \UnitEnum => $value->name,
                $value instanceof \JsonSerializable && $depth < self::MAX_DEPTH => self::plain($value->jsonSerialize(), $depth + 1),
                $value instanceof \Stringable => self::plain((string) $value, $depth),
                default => $value::class,
            };
        } catch (\Throwable $error) {
            return $value::class . ', which cannot be shown: ' . $error->getMessage();
        }
    }

    /** @return array<string, mixed> */
    private static function exception(\Throwable $exception, int $depth): array
    {
        $shown = [
            'class' => $exception::class,
            'message' => self::plain($exception->getMessage(), $depth),
            'code' => $exception->getCode(),
            'at' => $exception->getFile() . ':' . $exception->getLine(),
        ];
        if ($depth < self::MAX_DEPTH) {
            $shown['trace'] = array_slice(explode("\n", $exception->getTraceAsString()), 0, 30);
        }
        $cause = $exception->getPrevious();
        if ($cause !== null && $depth < self::MAX_DEPTH) {
            $shown['previous'] = self::exception($cause, $depth + 1);
        }

        return $shown;
    }
}
