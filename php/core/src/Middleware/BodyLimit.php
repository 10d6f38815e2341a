<?php

declare(strict_types=1);

namespace Surus\Middleware;

use Surus\Http\HttpException;
use Surus\Http\Middleware;
use Surus\Http\Request;
use Surus\Http\Response;

/** A lower limit for bodies than the server's, for some routes. A body without a length is refused. */
final class BodyLimit implements Middleware
{
    /** @param int $bytes */
    public function __construct(private readonly int $bytes)
    {
        if ($bytes < 0) {
            throw new \InvalidArgumentException('A body has 0 bytes or more');
        }
    }

    public function handle(Request $request, \Closure $next): Response
    {
        if ($request->header('transfer-encoding') !== null) {
            throw new HttpException(411);
        }
        if ((int) $request->header('content-length', '0') > $this->bytes) {
            throw new HttpException(413, "The body may have $this->bytes bytes");
        }

        return $next($request);
    }
}
