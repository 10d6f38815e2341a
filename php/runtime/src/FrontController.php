<?php

declare(strict_types=1);

namespace Surus\Runtime;

use Surus\BootError;

/**
 * Runs a script once, and after it, in each request, a front controller that knows nothing of that.
 *
 * @internal
 */
final class FrontController
{
    /**
     * Serves until no more requests come. Both files run in the global scope.
     *
     * @param string $boot what all requests begin with: it loads classes, makes objects, reads configuration
     * @param string $script the front controller, such as public/index.php
     *
     * @throws BootError if the first one does not come to its end
     */
    public static function serve(string $boot, string $script): void
    {
        if (!\Surus\Internal\run_script($boot)) {
            throw new BootError("$boot did not come to its end");
        }
        $handler = static function () use ($script): void {
            \Surus\Internal\run_script($script);
        };
        while (\Surus\handle_request($handler)) {
            // Each request finds what the first script has left.
        }
    }
}
