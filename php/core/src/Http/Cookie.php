<?php

declare(strict_types=1);

namespace Surus\Http;

/** A cookie for the browser. By default scripts cannot read it, and forms of other sites do not send it. */
final class Cookie implements \Stringable
{
    /**
     * @param string $value any text; it is encoded
     * @param ?int $maxAge seconds; null: until the browser is closed
     * @param ?bool $secure null: if the name requires it (`__Host-`, `__Secure-`)
     * @param 'Lax'|'Strict'|'None' $sameSite
     *
     * @throws \InvalidArgumentException for a cookie that no browser would accept
     */
    public function __construct(
        public readonly string $name,
        public readonly string $value,
        public readonly ?int $maxAge = null,
        public readonly string $path = '/',
        public readonly ?string $domain = null,
        public readonly ?bool $secure = null,
        public readonly bool $httpOnly = true,
        public readonly string $sameSite = 'Lax',
    ) {
        if (preg_match('/^[!#$%&\'*+\-.^_`|~0-9A-Za-z]+$/D', $name) !== 1) {
            throw new \InvalidArgumentException("\"$name\" is not a name for a cookie");
        }
        if (preg_match('/[\x00-\x20;,\x7f]/', $path . $domain) === 1) {
            throw new \InvalidArgumentException('The path or domain of a cookie has characters that end it');
        }
        if (!in_array($sameSite, ['Lax', 'Strict', 'None'], true)) {
            throw new \InvalidArgumentException("\"$sameSite\" is not Lax, Strict or None");
        }
        if ($sameSite === 'None' && !$this->isSecure()) {
            throw new \InvalidArgumentException('SameSite=None needs a secure cookie');
        }
        if (str_starts_with($name, '__Host-') && ($path !== '/' || $domain !== null)) {
            throw new \InvalidArgumentException("$name must be for the path / and no domain");
        }
    }

    /** The value of a set-cookie header. */
    public function __toString(): string
    {
        $text = $this->name . '=' . rawurlencode($this->value) . "; Path=$this->path";
        if ($this->domain !== null) {
            $text .= "; Domain=$this->domain";
        }
        if ($this->maxAge !== null) {
            $text .= '; Max-Age=' . max(0, $this->maxAge) . '; Expires=' . gmdate('D, d M Y H:i:s', $this->maxAge > 0 ? time() + $this->maxAge : 0) . ' GMT';
        }

        return $text . ($this->isSecure() ? '; Secure' : '') . ($this->httpOnly ? '; HttpOnly' : '') . "; SameSite=$this->sameSite";
    }

    private function isSecure(): bool
    {
        return $this->secure ?? (str_starts_with($this->name, '__Host-') || str_starts_with($this->name, '__Secure-'));
    }
}
