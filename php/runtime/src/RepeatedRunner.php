<?php

declare(strict_types=1);

namespace Surus\Runtime;

use Symfony\Component\Runtime\RunnerInterface;

/**
 * Runs the same thing for each request.
 *
 * @internal
 */
final class RepeatedRunner implements RunnerInterface
{
    public function __construct(private readonly RunnerInterface $runner)
    {
    }

    public function run(): int
    {
        $variables = new BootVariables();
        $handler = function () use ($variables): void {
            $variables->restore();
            $this->runner->run();
        };
        while (\Surus\handle_request($handler)) {
            // The next one.
        }

        return 0;
    }
}
