<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\Http\HttpException;

/**
 * A 404 that no handler has thrown.
 *
 * @internal
 */
final class NoRoute extends HttpException
{
}
