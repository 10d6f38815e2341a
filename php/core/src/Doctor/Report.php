<?php

declare(strict_types=1);

namespace Surus\Doctor;

/**
 * Findings for people.
 *
 * @internal
 */
final class Report
{
    /**
     * @param array<string, int> $statuses of requests
     * @param list<Finding> $findings
     */
    public function __construct(
        private readonly string $script,
        private readonly array $statuses,
        private readonly int $left,
        private readonly array $findings,
    ) {
    }

    public function print(): void
    {
        echo "$this->script: ", self::number(count($this->statuses), 'request'), " of three clients each\n";
        foreach ($this->statuses as $request => $status) {
            if ($status >= 400) {
                echo "  $request answered $status: what is behind it was not examined\n";
            }
        }
        if ($this->left > 0) {
            echo '  ', self::number($this->left, 'route'), " left out: with parameters, or not GET. Add requests: surus doctor $this->script \"GET /users/7\"\n";
        }
        foreach (Kind::cases() as $kind) {
            $this->printKind($kind);
        }
        echo "\n", $this->verdict(), "\n";
    }

    private function printKind(Kind $kind): void
    {
        $of = array_filter($this->findings, static fn (Finding $finding): bool => $finding->kind === $kind);
        if ($of === []) {
            return;
        }
        echo "\n";
        foreach ($of as $finding) {
            $at = $finding->place->root->place();
            echo $kind->value, ': ', $finding->place->name(), $at === '' ? '' : " ($at)", "\n    $finding->what\n";
        }
        echo '    → ', $kind->remedy(), ".\n";
    }

    private function verdict(): string
    {
        if ($this->statuses === []) {
            return 'Nothing was examined: name requests.';
        }
        foreach ($this->findings as $finding) {
            if ($finding->kind->isFault()) {
                return 'Not ready for coroutine mode: requests would see each other\'s data, or share connections.';
            }
        }

        return 'Nothing was found that speaks against coroutine mode in what was examined.';
    }

    private static function number(int $number, string $of): string
    {
        return $number === 1 ? "1 $of" : "$number {$of}s";
    }
}
