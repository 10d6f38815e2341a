<?php

declare(strict_types=1);

namespace Surus\Psr;

use Psr\Http\Message\StreamInterface;

/**
 * A streamed body for PSR-7: read once, from the start to the end.
 *
 * Parameters have no types, so that it is compatible with psr/http-message 1 and 2.
 *
 * @internal
 */
final class IterableStream implements StreamInterface
{
    private \Iterator $items;
    private string $rest = '';
    private int $position = 0;

    /** @param iterable<string|\Stringable> $items */
    public function __construct(iterable $items)
    {
        $this->items = (static fn (): \Generator => yield from $items)();
    }

    public function read($length): string
    {
        if ($this->rest === '' && $this->items->valid()) {
            $this->rest = (string) $this->items->current();
            $this->items->next();
        }
        $block = substr($this->rest, 0, $length);
        $this->rest = substr($this->rest, strlen($block));
        $this->position += strlen($block);

        return $block;
    }

    public function getContents(): string
    {
        $text = '';
        while (!$this->eof()) {
            $text .= $this->read(PHP_INT_MAX);
        }

        return $text;
    }

    public function __toString(): string
    {
        return $this->getContents();
    }

    public function eof(): bool
    {
        return $this->rest === '' && !$this->items->valid();
    }

    public function tell(): int
    {
        return $this->position;
    }

    public function getSize(): ?int
    {
        return null;
    }

    public function isReadable(): bool
    {
        return true;
    }

    public function isSeekable(): bool
    {
        return false;
    }

    public function isWritable(): bool
    {
        return false;
    }

    public function seek($offset, $whence = SEEK_SET): void
    {
        throw new \RuntimeException('A streamed body is read once');
    }

    public function rewind(): void
    {
        $this->seek(0);
    }

    public function write($string): int
    {
        throw new \RuntimeException('A streamed body is not written to');
    }

    public function close(): void
    {
        $this->detach();
    }

    public function detach()
    {
        $this->items = new \EmptyIterator();
        $this->rest = '';

        return null;
    }

    public function getMetadata($key = null): mixed
    {
        return $key === null ? [] : null;
    }
}
