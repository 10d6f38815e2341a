<?php

declare(strict_types=1);

namespace Surus\Auth;

use Surus\Http\Cookie;
use Surus\Http\Middleware;
use Surus\Http\Request;
use Surus\Http\Response;
use Surus\Security\Vault;

/**
 * Logs users in again who have asked to be remembered: inside {@see SessionAuth}.
 *
 * The cookie is valid once. It has a series and a token; only a hash of the token is stored. A known series with
 * another token means that the cookie was copied and used: then the whole series ends, for both clients.
 */
final class RememberMe implements Middleware
{
    private const REMEMBER = self::class;

    /** @param \Closure(string|int): mixed $find the user with this id, or null */
    public function __construct(
        private readonly RememberStore $store,
        private readonly \Closure $find,
        private readonly string $name = 'remember',
        private readonly int $seconds = 2_592_000,
    ) {
    }

    /** To be called with {@see SessionAuth::login()}: this user wants to be remembered. */
    public static function remember(Request $request, string|int $id): void
    {
        $request->setAttribute(self::REMEMBER, $id);
    }

    public function handle(Request $request, \Closure $next): Response
    {
        [$series, $token] = explode('.', $request->cookie($this->cookieName($request)) ?? '', 2) + [1 => ''];
        $known = strlen($series) === 22 && $token !== '' ? $this->store->find($series) : null;
        $answer = null;
        if ($known !== null && User::of($request) === null) {
            $answer = $this->comeBack($request, $series, $token, $known);
        }
        $before = User::of($request);
        $response = $next($request);
        $id = $request->attribute(self::REMEMBER);
        if ($id !== null) {
            $series = Vault::encode(random_bytes(16));

            return $response->withCookie($this->issue($request, $series, $id));
        }
        if ($known !== null && $before !== null && User::of($request) === null) {
            // Logged out.
            $this->store->delete($series);
            $answer = $this->gone($request);
        }

        return $answer === null ? $response : $response->withCookie($answer);
    }

    /** @param array{id: string|int, hash: string, until: int} $known */
    private function comeBack(Request $request, string $series, #[\SensitiveParameter] string $token, array $known): Cookie
    {
        $user = $known['until'] >= time() && hash_equals($known['hash'], hash('sha256', $token)) ? ($this->find)($known['id']) : null;
        if ($user === null) {
            $this->store->delete($series);

            return $this->gone($request);
        }
        SessionAuth::login($request, $known['id'], $user);

        return $this->issue($request, $series, $known['id']);
    }

    private function issue(Request $request, string $series, string|int $id): Cookie
    {
        $token = Vault::encode(random_bytes(32));
        $this->store->save($series, $id, hash('sha256', $token), time() + $this->seconds);

        return new Cookie($this->cookieName($request), "$series.$token", $this->seconds, secure: $request->isSecure());
    }

    private function gone(Request $request): Cookie
    {
        return new Cookie($this->cookieName($request), '', 0, secure: $request->isSecure());
    }

    private function cookieName(Request $request): string
    {
        return $request->isSecure() ? "__Host-$this->name" : $this->name;
    }
}
