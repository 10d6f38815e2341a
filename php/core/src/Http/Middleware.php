<?php

declare(strict_types=1);

namespace Surus\Http;

/** Code around a handler. One object serves all requests, many at a time: it must not keep state of requests. */
interface Middleware
{
    /**
     * @param \Closure(Request): Response $next
     *
     * @return mixed what a handler may return
     */
    public function handle(Request $request, \Closure $next): mixed;
}
