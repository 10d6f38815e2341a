<?php

declare(strict_types=1);

namespace Surus\Auth;

use Psr\SimpleCache\CacheInterface;

/**
 * Keys for {@see Jwt}: given here, or those of a provider's JWKS document.
 *
 * The document is read for the first token, again when it is old, and when a token names an unknown key, since
 * providers change their keys. It is never read more often than the pause allows, whatever tokens contain, and once for
 * all requests that wait for it. While the provider does not answer, the known keys stay valid for another hour.
 */
final class Keys
{
    private const STALE = 3600;

    /** When the document was read, and when this was last tried; Unix time in seconds. */
    private float $readAt = -INF;
    private float $triedAt = -INF;
    private bool $reading = false;

    /** @param list<Key> $keys */
    private function __construct(private array $keys, private readonly ?Provider $provider = null)
    {
    }

    /** These keys and no others. */
    public static function of(Key $key, Key ...$keys): self
    {
        return new self([$key, ...array_values($keys)]);
    }

    /**
     * @param string $url of the document: an https address of a trusted provider, or http on this machine
     * @param int $maxAge seconds after which it is read again
     * @param int $pause minimum seconds between two reads
     * @param ?CacheInterface $cache in which workers share it
     */
    public static function jwks(string $url, int $maxAge = 600, int $pause = 60, ?CacheInterface $cache = null): self
    {
        return new self([], new Provider($url, $maxAge, $pause, $cache));
    }

    /**
     * @param string $document a JSON Web Key Set (RFC 7517); keys of unsupported kinds are left out
     *
     * @throws \InvalidArgumentException if it is not a JSON Web Key Set
     */
    public static function document(string $document): self
    {
        return new self(self::parse($document) ?? throw new \InvalidArgumentException('This is no JSON Web Key Set'));
    }

    /** @internal the first one that can sign */
    public function signing(): ?Key
    {
        return array_values(array_filter($this->keys, static fn (Key $key): bool => $key->signs()))[0] ?? null;
    }

    /**
     * @internal
     *
     * @return list<Key>
     */
    public function find(string $algorithm, ?string $id): array
    {
        $found = $this->matching($algorithm, $id);
        if ($this->provider === null || ($found !== [] && microtime(true) - $this->readAt <= $this->provider->maxAge)) {
            return $found;
        }
        $this->refresh($this->provider, $found === []);

        return $this->matching($algorithm, $id);
    }

    private function refresh(Provider $provider, bool $missing): void
    {
        if ($this->reading) {
            if ($missing) {
                $this->wait();
            }
            return;
        }
        $now = microtime(true);
        if ($now - $this->triedAt >= $provider->pause) {
            $this->triedAt = $now;
            $this->reading = true;
            try {
                [$document, $at] = $provider->read($this->readAt) ?? ['', 0.0];
                $keys = self::parse($document);
            } finally {
                $this->reading = false;
            }
            if ($keys !== null) {
                [$this->keys, $this->readAt] = [$keys, $at];
            }
        }
        if ($now - $this->readAt > $provider->maxAge + self::STALE) {
            // The keys were not confirmed for too long.
            $this->keys = [];
        }
    }

    /** Waits for another request that is reading the document. */
    private function wait(): void
    {
        $until = microtime(true) + 2 * Provider::TIMEOUT;
        while ($this->reading && microtime(true) < $until) {
            usleep(5000);
        }
    }

    /** @return list<Key> */
    private function matching(string $algorithm, ?string $id): array
    {
        return array_values(array_filter(
            $this->keys,
            static fn (Key $key): bool => $key->algorithm === $algorithm && ($id === null || $key->id === null || $key->id === $id),
        ));
    }

    /** @return list<Key>|null */
    private static function parse(string $document): ?array
    {
        $set = json_decode($document, true, 8);
        if (!is_array($set) || !is_array($set['keys'] ?? null)) {
            return null;
        }
        $keys = array_map(static fn (mixed $key): ?Key => is_array($key) ? Key::jwk($key) : null, array_slice($set['keys'], 0, 64));

        return array_values(array_filter($keys));
    }
}
