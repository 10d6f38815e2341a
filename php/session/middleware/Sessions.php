<?php

declare(strict_types=1);

namespace Surus\Middleware;

use Surus\Http\Cookie;
use Surus\Http\Middleware;
use Surus\Http\Request;
use Surus\Http\Response;
use Surus\Security\Vault;
use Surus\Schema\SessionScheme;
use Surus\Session\CookieStore;
use Surus\Session\Session;
use Surus\Session\Store;

/**
 * Sessions with strict rules: ids are made here and never accepted from a client, a session ends when it is unused for
 * a while or old, scripts cannot read the cookie, and nothing is stored for a client without session values.
 *
 * Of two concurrent requests of one session, the last write wins; after one of them has ended the session, or given it
 * another id, writes of the other one are dropped.
 */
final class Sessions implements Middleware, SessionScheme
{
    /**
     * @param int $idle seconds without a request after which it ends; this may be up to a twentieth earlier
     * @param int $lifetime seconds after which it always ends
     * @param 'Lax'|'Strict'|'None' $sameSite
     */
    public function __construct(
        private readonly Store|CookieStore $store,
        private readonly string $name = 'session',
        private readonly int $idle = 7200,
        private readonly int $lifetime = 604_800,
        private readonly string $sameSite = 'Lax',
    ) {
    }

    public function schemeName(): string
    {
        return 'session';
    }

    /** The cookie. Over HTTPS its name begins with `__Host-`. */
    public function securityScheme(): array
    {
        return ['type' => 'apiKey', 'in' => 'cookie', 'name' => $this->name];
    }

    public function isOptional(): bool
    {
        return true;
    }

    /** The session of a request. */
    public static function of(Request $request): Session
    {
        $session = $request->attribute(Session::class);

        return $session instanceof Session ? $session : throw new \LogicException('The middleware Sessions is not in front of this handler');
    }

    public function handle(Request $request, \Closure $next): Response
    {
        $name = $request->isSecure() ? "__Host-$this->name" : $this->name;
        $cookie = $request->cookie($name) ?? '';
        $known = $this->load($cookie);
        $values = $known['values'] ?? [];
        $flash = $values['_flash'] ?? [];
        unset($values['_flash']);
        $session = new Session($values, $flash, $known['begun'] ?? time());
        $request->setAttribute(Session::class, $session);
        $response = $next($request);

        $state = $session->state();
        if ($known !== null && !$state['changed'] && !$state['regenerated'] && !$state['destroyed'] && !$this->isWorn($known)) {
            return $response;
        }

        return $this->save($response, $state, $name, $known === null ? '' : $cookie, $request->isSecure());
    }

    /**
     * Whether its last use must be written again: not at every request, since each would write.
     *
     * @param array{values: array<string, mixed>, begun: int, used: int} $known
     */
    private function isWorn(array $known): bool
    {
        return time() - $known['used'] >= intdiv($this->idle, 20);
    }

    /** @return array{values: array<string, mixed>, begun: int, used: int}|null */
    private function load(string $cookie): ?array
    {
        if ($cookie === '' || strlen($cookie) > 4096) {
            return null;
        }
        $data = $this->store instanceof CookieStore ? $this->store->open($cookie) : $this->store->read(self::key($cookie));
        $known = $data === null ? null : json_decode($data, true);
        if (!is_array($known) || $known['begun'] + $this->lifetime < time() || $known['used'] + $this->idle < time()) {
            return null;
        }

        return $known;
    }

    /** @param array{changed: bool, regenerated: bool, anew: bool, destroyed: bool, values: array<string, mixed>, begun: int} $state */
    private function save(Response $response, array $state, string $name, string $cookie, bool $secure): Response
    {
        ['changed' => $changed, 'regenerated' => $regenerated, 'destroyed' => $destroyed, 'values' => $values, 'begun' => $begun] = $state;
        if ($destroyed || ($values === [] && $changed && !$regenerated)) {
            if ($cookie === '') {
                return $response;
            }
            $this->forget($cookie);

            return $response->withCookie(new Cookie($name, '', 0, secure: $secure, sameSite: $this->sameSite));
        }
        if ($cookie === '' && !$changed) {
            return $response;
        }
        $data = json_encode(['values' => $values, 'begun' => $begun, 'used' => time()], JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES);
        $seconds = min($this->idle, max(1, $begun + $this->lifetime - time()));
        if ($this->store instanceof CookieStore) {
            $value = $this->store->seal($data, $seconds);
        } else {
            $isThere = $cookie === '' || $this->store->update(self::key($cookie), $data, $seconds);
            if (!$isThere && !$state['anew']) {
                return $response;
            }
            $value = $cookie === '' || $regenerated ? Vault::encode(random_bytes(32)) : $cookie;
            if ($value !== $cookie) {
                $this->store->write(self::key($value), $data, $seconds);
                if ($cookie !== '') {
                    $this->forget($cookie);
                }
            }
        }

        return $value === $cookie
            ? $response
            : $response->withCookie(new Cookie($name, $value, secure: $secure, sameSite: $this->sameSite))->withHeader('cache-control', $response->header('cache-control') ?? 'no-store');
    }

    private function forget(string $cookie): void
    {
        if ($this->store instanceof Store) {
            $this->store->delete(self::key($cookie));
        }
    }

    private static function key(string $cookie): string
    {
        return Vault::encode(hash('sha256', $cookie, true));
    }
}
