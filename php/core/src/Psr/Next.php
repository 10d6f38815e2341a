<?php

declare(strict_types=1);

namespace Surus\Psr;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Surus\Http\Request;
use Surus\Http\Response;

/**
 * The handler that a PSR-15 middleware calls: the rest of Surus' pipeline.
 *
 * @internal
 */
final class Next implements RequestHandlerInterface
{
    /** @param \Closure(Request): Response $next */
    public function __construct(private readonly Bridge $bridge, private readonly Request $request, private readonly \Closure $next)
    {
    }

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        // Attributes that the middleware has added are for inner middleware and the handler.
        foreach ($request->getAttributes() as $name => $value) {
            $this->request->setAttribute((string) $name, $value);
        }

        return $this->bridge->psrResponse(($this->next)($this->request));
    }
}
