<?php

declare(strict_types=1);

namespace Surus;

/** An entry of a {@see Stream}, as a group reads it. */
final class StreamEntry
{
    /** What was appended. If that cannot be unserialised here, to read it is a {@see QueueException}; the other entries are not affected. */
    public readonly mixed $payload;
    private ?\Throwable $error = null;

    /** @internal */
    public function __construct(
        public readonly int $position,
        string $payload,
        /** How often the group has read it, with this time, as far as the process with the streams knows. */
        public readonly int $attempt,
        /** Seconds since 1970. */
        public readonly float $appendedAt,
    ) {
        try {
            $this->payload = \unserialize($payload);
        } catch (CancelledException $error) {
            throw $error;
        } catch (\Throwable $error) {
            $this->error = $error;
            unset($this->payload); // so that __get() is asked for it
        }
    }

    /** @internal */
    public function __isset(string $name): bool
    {
        return $name === 'payload';
    }

    /** @internal */
    public function __get(string $name): mixed
    {
        if ($name !== 'payload' || $this->error === null) {
            throw new \Error('Undefined property: ' . self::class . "::\$$name");
        }
        throw Internal\at_caller(new QueueException("The payload of the entry $this->position cannot be read: " . $this->error->getMessage(), 0, $this->error));
    }
}
