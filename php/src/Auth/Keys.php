<?php

declare(strict_types=1);

namespace Surus\Auth;

/** Keys for {@see Jwt}: given here, or those of a provider's JWKS document, which is read again when it has new ones. */
final class Keys
{
    /** Seconds between two looks at a document, whatever tokens ask for. */
    private const PAUSE = 60;

    private int $lookedAt = 0;

    /** @param list<Key> $keys */
    private function __construct(private array $keys, private readonly ?string $url = null)
    {
    }

    public static function of(Key $key, Key ...$keys): self
    {
        return new self([$key, ...array_values($keys)]);
    }

    /** @param string $url where the document is: an https address of a provider that is trusted */
    public static function jwks(string $url): self
    {
        return new self([], $url);
    }

    /**
     * @param string $document a JSON Web Key Set (RFC 7517); keys of other kinds are left out
     *
     * @throws \InvalidArgumentException if it is none
     */
    public static function document(string $document): self
    {
        return new self(self::parse($document) ?? throw new \InvalidArgumentException('This is no JSON Web Key Set'));
    }

    /**
     * @internal
     *
     * @return list<Key>
     */
    public function find(string $algorithm, ?string $id): array
    {
        $found = $this->matching($algorithm, $id);
        if ($found === [] && $this->url !== null && $this->lookedAt + self::PAUSE < time()) {
            $this->lookedAt = time();
            $context = stream_context_create(['http' => ['timeout' => 5, 'follow_location' => 0]]);
            $keys = self::parse((string) @file_get_contents($this->url, false, $context, 0, 256 * 1024));
            $this->keys = $keys ?? $this->keys;
            $found = $this->matching($algorithm, $id);
        }

        return $found;
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
