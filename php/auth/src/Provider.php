<?php

declare(strict_types=1);

namespace Surus\Auth;

use Psr\SimpleCache\CacheInterface;

/**
 * Reads a JWKS document from its provider.
 *
 * @internal
 */
final class Provider
{
    /** The time in which the whole document must arrive, in seconds. */
    public const TIMEOUT = 5.0;

    private const MAX_BYTES = 262_144;

    /**
     * @param int $maxAge seconds after which the document is read again
     * @param int $pause minimum seconds between two reads
     *
     * @throws \InvalidArgumentException for an address without protection against an attacker in the network
     */
    public function __construct(
        private readonly string $url,
        public readonly int $maxAge,
        public readonly int $pause,
        private readonly ?CacheInterface $cache,
    ) {
        if (preg_match('~^(?:https://[^/]|http://(?:localhost|127\.0\.0\.1|\[::1\])(?:[:/]|$))~i', $url) !== 1) {
            throw new \InvalidArgumentException("Keys come from an https address, or from this machine, not from \"$url\"");
        }
    }

    /**
     * @param float $known when the known document was read
     *
     * @return array{string, float}|null the document, and when it was read; null if it is not available
     */
    public function read(float $known): ?array
    {
        $key = 'jwks.' . hash('sha256', $this->url);
        $shared = $this->cache?->get($key);
        if (is_array($shared) && is_string($shared[0] ?? null) && is_float($shared[1] ?? null)) {
            $age = microtime(true) - $shared[1];
            // Another worker has read it: after this one, or within the pause.
            if ($age <= $this->maxAge && ($shared[1] > $known || $age < $this->pause)) {
                return [$shared[0], $shared[1]];
            }
        }
        $document = $this->fetch();
        if ($document === null) {
            return null;
        }
        $read = [$document, microtime(true)];
        $this->cache?->set($key, $read, max(1, $this->maxAge));

        return $read;
    }

    private function fetch(): ?string
    {
        $until = microtime(true) + self::TIMEOUT;
        $context = stream_context_create(['http' => ['timeout' => self::TIMEOUT, 'follow_location' => 0, 'header' => 'Accept: application/json']]);
        // A status other than 200 is a failure, too.
        $stream = @fopen($this->url, 'rb', false, $context);
        if ($stream === false) {
            return null;
        }
        try {
            $document = '';
            while (!feof($stream)) {
                $left = $until - microtime(true);
                if ($left <= 0 || strlen($document) > self::MAX_BYTES) {
                    return null;
                }
                stream_set_timeout($stream, (int) $left, (int) (($left - (int) $left) * 1e6));
                $block = fread($stream, 65536);
                if ($block === false || stream_get_meta_data($stream)['timed_out']) {
                    return null;
                }
                $document .= $block;
            }

            return $document;
        } finally {
            fclose($stream);
        }
    }
}
