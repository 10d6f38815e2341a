<?php

declare(strict_types=1);

namespace Surus\Middleware;

use Surus\Http\AnswersPreflight;
use Surus\Http\Middleware;
use Surus\Http\Request;
use Surus\Http\Response;

/** Lets pages of other origins read responses. As middleware of the application, it covers errors, too. */
final class Cors implements Middleware, AnswersPreflight
{
    /**
     * @param list<string> $origins "https://app.example.com", or "*" for all (without credentials)
     * @param list<string> $headers allowed request headers besides the simple ones
     * @param list<string> $expose response headers that pages may read
     * @param int $maxAge seconds for which a browser caches the answer to a preflight request
     *
     * @throws \InvalidArgumentException for a policy that would let every page act as the user
     */
    public function __construct(
        private readonly array $origins,
        private readonly bool $credentials = false,
        private readonly array $headers = ['content-type', 'authorization'],
        private readonly array $expose = [],
        private readonly int $maxAge = 600,
    ) {
        foreach ($origins as $origin) {
            if ($origin !== '*' && preg_match('~^[a-z][a-z0-9+.-]*://[^/\s]+$~D', $origin) !== 1) {
                throw new \InvalidArgumentException("\"$origin\" is no origin: scheme and host, nothing behind");
            }
        }
        if ($credentials && in_array('*', $origins, true)) {
            throw new \InvalidArgumentException('Credentials for every origin would let every page act for the visitor');
        }
    }

    public function handle(Request $request, \Closure $next): Response
    {
        return $this->mark($request, $next($request));
    }

    public function preflight(Request $request, array $methods): Response
    {
        $wanted = (string) $request->header('access-control-request-method', '');
        $response = $this->mark($request, new Response(null, 204))->withListItem('vary', 'Access-Control-Request-Headers');
        $allowed = in_array('*', $methods, true) && preg_match('/^[A-Z]{1,32}$/D', $wanted) === 1 ? [...$methods, $wanted] : $methods;
        if (in_array('GET', $allowed, true)) {
            $allowed[] = 'HEAD';
        }
        $allowed = array_values(array_diff(array_unique($allowed), ['*']));
        if ($this->allowed($request) === null || $wanted === '') {
            return $response->withHeader('allow', implode(', ', [...$allowed, 'OPTIONS']));
        }

        return $response->withHeaders([
            'access-control-allow-methods' => implode(', ', $allowed),
            'access-control-allow-headers' => implode(', ', $this->headers),
            'access-control-max-age' => (string) $this->maxAge,
        ]);
    }

    private function mark(Request $request, Response $response): Response
    {
        $origin = $this->allowed($request);
        if ($origin !== '*') {
            // A cache must not return one origin's response to another origin.
            $response = $response->withListItem('vary', 'Origin');
        }
        if ($origin === null) {
            return $response;
        }
        $headers = ['access-control-allow-origin' => $origin];
        if ($this->credentials) {
            $headers['access-control-allow-credentials'] = 'true';
        }
        if ($this->expose !== []) {
            $headers['access-control-expose-headers'] = implode(', ', $this->expose);
        }

        return $response->withHeaders($headers);
    }

    /** The value of access-control-allow-origin for the request; null: none. */
    private function allowed(Request $request): ?string
    {
        if (in_array('*', $this->origins, true)) {
            return '*';
        }
        $origin = (string) $request->header('origin', '');

        return in_array($origin, $this->origins, true) ? $origin : null;
    }
}
