<?php

declare(strict_types=1);

/** The planned exception: nobody answers for it but the server. */
final class Planned extends Exception
{
}

/**
 * What one request says to a server and hears from it. Each word is its own: the request's token and a number.
 */
final class Exchange
{
    /** @var list<string> */
    public array $heard = [];

    private int $words = 0;

    private int $steps = 0;

    /**
     * @param int $delay milliseconds that a server takes for an answer, where it can be asked to
     * @param string $end how the request ends in the middle: exit, fatal, exception, memory, or not
     * @param int $at at which step it does
     * @param Closure(): string $upload the content of the file that came with the request
     */
    public function __construct(
        public readonly string $token,
        public readonly int $delay,
        private readonly string $end,
        private readonly int $at,
        public readonly Closure $upload,
    ) {
    }

    /** The next word that a server has to give back. */
    public function word(): string
    {
        return $this->token . '-' . ++$this->words;
    }

    public function hear(mixed $word): void
    {
        $this->heard[] = is_scalar($word) ? (string) $word : get_debug_type($word);
        $this->step();
    }

    /** What the last user has left of itself, which must be nothing: then it counts as the word. */
    public function clean(mixed $left): void
    {
        $word = $this->word();
        $this->hear($left === null || $left === false || $left === '' || $left === 0 || $left === '0' ? $word : $left);
    }

    /** A place where the request may end. */
    public function step(): void
    {
        if (++$this->steps !== $this->at) {
            return;
        }
        switch ($this->end) {
            case 'exit':
                exit("left {$this->token}");
            case 'exception':
                throw new Planned('planned');
            case 'fatal':
                eval('abstract class Impossible { final abstract function f(); }');
                break;
            case 'memory':
                str_repeat('x', 1 << 40);
        }
    }

    public function seconds(): string
    {
        return sprintf('%.3f', $this->delay / 1000);
    }
}

/** What a driver returns instead of throwing. */
function expect(mixed $value, string $what): mixed
{
    if ($value === false || $value === null) {
        throw new RuntimeException("{$what} failed");
    }

    return $value;
}

function port(string $server): int
{
    return (int) getenv('ADVERSARY_' . $server);
}
