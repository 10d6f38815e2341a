<?php

declare(strict_types=1);

namespace Surus\Http;

use Psr\Http\Message\ResponseInterface;
use Surus\Internal\NativeResponse;
use Surus\Psr\Bridge;

use function Surus\Internal\json;

/**
 * A response. Handlers that need no special status or header return a string, an array, an int or null instead.
 * It is immutable: the with…() methods return another one.
 */
class Response extends NativeResponse
{
    /**
     * Makes a response from a handler's result.
     *
     * @param string $from for errors: what has returned it
     */
    public static function of(mixed $result, string $from = 'The handler'): self
    {
        if ($result instanceof self) {
            return $result;
        }
        if (is_string($result)) {
            return new self($result);
        }
        if ($result === null) {
            // Echoed output is the body: then the status cannot be one without a body.
            return (int) ob_get_length() > 0 ? new self('') : new self(null, 204);
        }
        if (is_int($result)) {
            return $result >= 100 && $result <= 599 ? new self(null, $result)
                : throw new \TypeError("$from returned $result: an integer must be an HTTP status from 100 to 599");
        }
        if ($result instanceof \Traversable && !$result instanceof \JsonSerializable) {
            return new self($result);
        }
        if ($result instanceof ResponseInterface) {
            return Bridge::response($result);
        }
        if (is_array($result) || is_object($result)) {
            return self::json($result);
        }
        throw new \TypeError("$from returned " . get_debug_type($result)
            . ': return a string, array, object, status, Response, iterable or null');
    }

    /**
     * Like json_encode(), but a DateTimeInterface is a string: 2026-11-23T18:00:00+01:00 (RFC 3339).
     *
     * @param array<string, string|list<string>> $headers
     *
     * @throws \JsonException if the value has no JSON form
     */
    public static function json(mixed $value, int $status = 200, array $headers = []): self
    {
        return new self(json($value), $status, array_change_key_case($headers) + ['content-type' => 'application/json']);
    }

    /** @param array<string, string|list<string>> $headers */
    public static function html(string $html, int $status = 200, array $headers = []): self
    {
        return new self($html, $status, array_change_key_case($headers) + ['content-type' => 'text/html; charset=UTF-8']);
    }

    /** @param array<string, string|list<string>> $headers */
    public static function text(string $text, int $status = 200, array $headers = []): self
    {
        return new self($text, $status, array_change_key_case($headers) + ['content-type' => 'text/plain; charset=UTF-8']);
    }

    /**
     * A redirect: with 302 and 303 browsers turn a POST into a GET, with 307 and 308 they repeat it.
     *
     * @throws \InvalidArgumentException for an address with control characters
     */
    public static function redirect(string $to, int $status = 303): self
    {
        if (preg_match('/[\x00-\x20\x7f]/', $to) === 1) {
            throw new \InvalidArgumentException('A redirect to an address with control characters or spaces');
        }

        return new self(null, $status, ['location' => $to]);
    }

    /**
     * A redirect to a path of this site; any other address is replaced with $otherwise. For addresses that clients
     * send.
     */
    public static function redirectWithin(string $path, string $otherwise = '/', int $status = 303): self
    {
        // Browsers treat a backslash as a slash: "/\host" is another site, like "//host".
        $safe = preg_match('~^/(?![/\\\\])[^\x00-\x20\x7f\\\\]*$~D', $path) === 1;

        return self::redirect($safe ? $path : $otherwise, $status);
    }

    /**
     * A problem document (RFC 9457).
     *
     * @param array<string, mixed> $members more members; "detail" is for people
     * @param array<string, string|list<string>> $headers
     */
    public static function problem(int $status, string $type = 'about:blank', array $members = [], array $headers = []): self
    {
        $document = ['title' => self::reason($status), 'status' => $status] + $members;
        if ($type !== 'about:blank') {
            $document = ['type' => $type] + $document;
        }
        $text = json($document, JSON_INVALID_UTF8_SUBSTITUTE);

        return new self($text, $status, array_change_key_case($headers) + ['content-type' => 'application/problem+json']);
    }

    /**
     * A streamed body: each item is sent at once.
     *
     * @param iterable<string|\Stringable> $items
     * @param array<string, string|list<string>> $headers
     */
    public static function stream(iterable $items, int $status = 200, array $headers = []): self
    {
        return new self($items, $status, $headers);
    }

    /**
     * Server-sent events: strings are data, arrays have the fields data, event, id and retry, other data becomes JSON.
     *
     * @param iterable<mixed> $events
     */
    public static function events(iterable $events): self
    {
        return new self(EventStream::encode($events), 200, [
            'content-type' => 'text/event-stream',
            'cache-control' => 'no-store',
            'x-accel-buffering' => 'no',
        ]);
    }

    /**
     * A file; uses Range and the conditions of the current request. Never pass a path from a client.
     *
     * @param array<string, string|list<string>> $headers
     *
     * @throws HttpException 404 if there is no such file
     */
    public static function file(string $path, array $headers = []): self
    {
        return FileResponse::make($path, $headers);
    }

    /**
     * A file that the browser saves under a name.
     *
     * @param array<string, string|list<string>> $headers
     */
    public static function download(string $path, ?string $name = null, array $headers = []): self
    {
        return self::file($path, array_change_key_case($headers) + ['content-disposition' => self::attachment($name ?? basename($path))]);
    }

    /** The value of content-disposition for a file name in any script (RFC 6266). */
    public static function attachment(string $name): string
    {
        $name = (string) preg_replace('~[/\\\\\x00-\x1f\x7f]~', '_', $name);
        $plain = (string) preg_replace('/[^\x20-\x7e]|["%]/', '_', $name);

        return "attachment; filename=\"$plain\"" . ($plain === $name ? '' : "; filename*=UTF-8''" . rawurlencode($name));
    }

    /** The first value of a header, in any case. */
    public function header(string $name): ?string
    {
        return $this->values($name)[0] ?? null;
    }

    /**
     * @param int $status from 100 to 599
     *
     * @throws \ValueError for a status out of range
     */
    public function withStatus(int $status): self
    {
        return $this->with($this->body(), $status, $this->headers());
    }

    /** @param string|iterable<string|\Stringable>|null $body */
    public function withBody(string|iterable|null $body): self
    {
        return $this->with($body, $this->status(), $this->headers());
    }

    /**
     * Replaces the headers with this name.
     *
     * @param string|list<string> $value
     */
    public function withHeader(string $name, string|array $value): self
    {
        $headers = $this->without($name);
        $headers[strtolower($name)] = $value;

        return $this->with($this->body(), $this->status(), $headers);
    }

    /** @param array<string, string|list<string>> $headers */
    public function withHeaders(array $headers): self
    {
        $new = array_change_key_case($headers);
        $all = $this->headers();
        foreach ($all as $name => $value) {
            if (isset($new[strtolower((string) $name)])) {
                unset($all[$name]);
            }
        }

        return $this->with($this->body(), $this->status(), $all + $new);
    }

    /** Adds a header; existing ones with this name stay. */
    public function withAddedHeader(string $name, string $value): self
    {
        return $this->withHeader($name, [...$this->values($name), $value]);
    }

    /** Adds an item to a list such as Vary, unless it is there already. */
    public function withListItem(string $name, string $item): self
    {
        $value = implode(', ', $this->values($name));
        $items = array_map(trim(...), explode(',', strtolower($value)));
        if (in_array(strtolower($item), $items, true) || $value === '*') {
            return $this;
        }

        return $this->withHeader($name, $value === '' ? $item : "$value, $item");
    }

    /** Without the headers of this name, in any case. */
    public function withoutHeader(string $name): self
    {
        return $this->with($this->body(), $this->status(), $this->without($name));
    }

    /** Adds a cookie to those that are set already. */
    public function withCookie(Cookie $cookie): self
    {
        return $this->withAddedHeader('set-cookie', (string) $cookie);
    }

    /** Deletes the cookie with this path and domain in the browser. */
    public function withoutCookie(string $name, string $path = '/', ?string $domain = null): self
    {
        return $this->withCookie(new Cookie($name, '', maxAge: 0, path: $path, domain: $domain));
    }

    /**
     * Fields after the body, for clients that accept them (`TE: trailers`, HTTP/2): for example a checksum of the body,
     * or the result of a stream. A closure is called when the body has been sent.
     *
     * @param array<string, string|\Closure(): string> $trailers
     */
    public function withTrailers(array $trailers): self
    {
        return new self($this->body(), $this->status(), $this->headers(), $trailers);
    }

    /** The standard phrase for a status. */
    public static function reason(int $status): string
    {
        return Reason::PHRASES[$status] ?? 'Error';
    }

    /** @param array<string, string|list<string>> $headers */
    private function with(mixed $body, int $status, array $headers): self
    {
        return new self($body, $status, $headers, $this->trailers());
    }

    /** @return list<string> of the headers with this name */
    private function values(string $name): array
    {
        $values = [];
        foreach ($this->headers() as $key => $value) {
            if (strcasecmp((string) $key, $name) === 0) {
                array_push($values, ...array_values((array) $value));
            }
        }

        return $values;
    }

    /** @return array<string, string|list<string>> */
    private function without(string $name): array
    {
        $headers = $this->headers();
        foreach ($headers as $key => $value) {
            if (strcasecmp((string) $key, $name) === 0) {
                unset($headers[$key]);
            }
        }

        return $headers;
    }
}
