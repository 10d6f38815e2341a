<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\Http\AnswersPreflight;
use Surus\Http\Request;
use Surus\Http\Response;

/**
 * Routes for CORS preflight requests (OPTIONS), which browsers send before another request.
 *
 * @internal
 */
final class Preflights
{
    /** @var array<string, array{Declared, ?AnswersPreflight, list<string>}> */
    private array $paths = [];

    public function __construct(private readonly Pipeline $pipeline)
    {
    }

    /** @param list<callable|object|string> $middleware */
    public function note(Declared $route, array $middleware): void
    {
        $key = $route->host . "\n" . $route->pattern->shape();
        $this->paths[$key] ??= [$route, null, []];
        array_push($this->paths[$key][2], ...$route->methods);
        foreach ($middleware as $one) {
            $one = $this->pipeline->resolve($one, $route->origin);
            if ($one instanceof AnswersPreflight) {
                $this->paths[$key][1] = $one;
            }
        }
    }

    /** @return iterable<Declared> */
    public function routes(): iterable
    {
        foreach ($this->paths as [$route, $policy, $methods]) {
            if ($policy === null || in_array('OPTIONS', $methods, true)) {
                continue;
            }
            $methods = array_values(array_unique($methods));
            $handler = static fn (Request $request): Response => $policy->preflight($request, $methods);
            yield new Declared(['OPTIONS'], $route->pattern, $handler, '', $route->host, [], [], null, $route->origin, false);
        }
    }
}
