<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\Http\HttpException;

/**
 * A 404 because no route matches, not thrown by a handler.
 *
 * @internal
 */
final class NoRoute extends HttpException
{
}
