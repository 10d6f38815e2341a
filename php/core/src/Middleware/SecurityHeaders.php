<?php

declare(strict_types=1);

namespace Surus\Middleware;

use Surus\Http\Middleware;
use Surus\Http\Request;
use Surus\Http\Response;

/** Sets security headers for browsers. Headers that a handler has set stay. */
final class SecurityHeaders implements Middleware
{
    /** @var array<string, string> */
    private readonly array $headers;

    /**
     * @param ?string $contentSecurityPolicy null: none; "{nonce}" becomes {@see SecurityHeaders::nonce()}
     * @param int $hsts seconds for which browsers use only HTTPS after a visit; 0: none
     * @param array<string, ?string> $more other headers; null removes one
     */
    public function __construct(
        private readonly ?string $contentSecurityPolicy = "default-src 'self'; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'",
        private readonly int $hsts = 31_536_000,
        array $more = [],
    ) {
        $this->headers = array_filter($more + [
            'x-content-type-options' => 'nosniff',
            'x-frame-options' => 'SAMEORIGIN',
            'referrer-policy' => 'strict-origin-when-cross-origin',
            'cross-origin-opener-policy' => 'same-origin',
            'permissions-policy' => 'camera=(), geolocation=(), microphone=()',
        ], is_string(...));
    }

    /** For the inline scripts of this response. */
    public static function nonce(Request $request): string
    {
        $nonce = $request->attribute(self::class);
        if (!is_string($nonce)) {
            $nonce = base64_encode(random_bytes(16));
            $request->setAttribute(self::class, $nonce);
        }

        return $nonce;
    }

    public function handle(Request $request, \Closure $next): Response
    {
        $response = $next($request);
        $headers = $this->headers;
        if ($this->contentSecurityPolicy !== null) {
            $policy = $this->contentSecurityPolicy;
            $headers['content-security-policy'] = str_contains($policy, '{nonce}')
                ? str_replace('{nonce}', "'nonce-" . self::nonce($request) . "'", $policy)
                : $policy;
        }
        if ($this->hsts > 0 && $request->isSecure()) {
            $headers['strict-transport-security'] = "max-age=$this->hsts";
        }
        $own = array_change_key_case($response->headers());

        return $response->withHeaders(array_diff_key($headers, $own));
    }
}
