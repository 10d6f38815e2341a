<?php

declare(strict_types=1);

namespace Surus\Testing;

use PHPUnit\Framework\Assert;

/** A response in a test; an assertion that fails throws, with the response in its message. */
final class TestResponse
{
    /** @param array<string, list<string>> $headers under lower-case names */
    public function __construct(
        private readonly string $what,
        public readonly int $status,
        public readonly array $headers,
        public readonly string $body,
        private readonly \Closure $held,
    ) {
    }

    /** The response has this status. */
    public function assertStatus(int $status): self
    {
        return $this->assert($this->status === $status, "the status is not $status");
    }

    /** There is such a header, with this value if one is given. */
    public function assertHeader(string $name, ?string $value = null): self
    {
        $found = $this->headers[strtolower($name)] ?? [];

        return $this->assert($value === null ? $found !== [] : in_array($value, $found, true), "the header $name is not " . ($value ?? 'there'));
    }

    /** The body contains exactly this text. */
    public function assertSee(string $text): self
    {
        return $this->assert(str_contains($this->body, $text), "the body has no \"$text\"");
    }

    /** The body is this JSON, independent of the order of its members. */
    public function assertJson(mixed $expected): self
    {
        return $this->assert($this->json() == $expected, 'the body is not ' . json_encode($expected));
    }

    /** @throws \JsonException if the body is not JSON */
    public function json(): mixed
    {
        return json_decode($this->body, true, 512, JSON_THROW_ON_ERROR);
    }

    private function assert(bool $holds, string $why): self
    {
        $text = "$this->what: $why\n$this->status\n" . substr($this->body, 0, 2000);
        if (class_exists(Assert::class, false)) {
            // So that PHPUnit counts it.
            Assert::assertTrue($holds, $text);
        } elseif (!$holds) {
            throw new \AssertionError($text);
        }
        ($this->held)();

        return $this;
    }
}
