<?php

declare(strict_types=1);

namespace App;

use Symfony\Contracts\Service\ResetInterface;

/** What a request has noted, to be written after its response; forgotten between requests. */
final class Visits implements ResetInterface
{
    /** Requests for this that the isolate has served. */
    public static int $served = 0;

    /** @var list<string> */
    private array $noted = [];

    public function note(string $what): void
    {
        $this->noted[] = $what;
    }

    /** @return list<string> */
    public function noted(): array
    {
        return $this->noted;
    }

    public function reset(): void
    {
        $this->noted = [];
    }
}
