<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\Http\Request;

/**
 * A script that runs for each request to it.
 *
 * @internal
 */
final class Page
{
    public function __construct(public readonly string $file)
    {
    }

    public function __invoke(Request $request): mixed
    {
        // Static, so that the script sees only its own variables.
        $result = (static function (): mixed {
            extract(func_get_arg(1), EXTR_SKIP);

            return require func_get_arg(0);
        })($this->file, ['request' => $request] + $request->params());

        // Without a return statement the result is 1.
        return $result === 1 ? null : $result;
    }
}
