<?php

declare(strict_types=1);

namespace App;

/** Notes in a file. */
final class Notes
{
    public function __construct(private readonly string $file)
    {
    }

    /** @return list<string> */
    public function all(): array
    {
        return is_file($this->file) ? json_decode((string) file_get_contents($this->file), true) : [];
    }

    public function add(string $text): void
    {
        if ($text !== '') {
            file_put_contents($this->file, json_encode([...$this->all(), $text], JSON_THROW_ON_ERROR), LOCK_EX);
        }
    }
}
