<?php

declare(strict_types=1);

namespace Surus\Testing;

use Surus\App;
use Surus\Internal\InProcess as Native;

/**
 * Sends requests to an application in this script.
 *
 * @internal
 */
final class InProcess implements Transport
{
    private readonly Native $native;

    public function __construct(App $app)
    {
        $this->native = new Native($app);
    }

    public function send(string $method, string $target, array $head, string $body): array
    {
        foreach ($head as $line) {
            if (strpbrk($line, "\r\n") !== false) {
                throw new \InvalidArgumentException('A header has one line');
            }
        }
        [$status, $lines, $content] = $this->native->request($method, $target, implode("\n", $head), $body);

        return [$status, preg_split('/\n/', $lines, -1, PREG_SPLIT_NO_EMPTY) ?: [], $content];
    }
}
