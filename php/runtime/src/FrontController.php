<?php

declare(strict_types=1);

namespace Surus\Runtime;

/**
 * Runs a script once, and after it, in each request, the front controller, or the script that its path names, which know nothing of
 * that.
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
     * @throws \LogicException if the first one does not come to its end
     */
    public static function serve(string $boot, string $script): void
    {
        if (!run_script($boot, false)) {
            throw new \LogicException("$boot did not come to its end");
        }
        $folder = dirname($script);
        $handler = static function () use ($folder): void {
            $file = $_SERVER['SCRIPT_FILENAME'];
            run_script($file, dirname($file) !== $folder);
        };
        while (\Surus\handle_request($handler)) {
            // Each request finds what the first script has left.
        }
    }
}
