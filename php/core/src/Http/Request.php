<?php

declare(strict_types=1);

namespace Surus\Http;

use Surus\Internal\NativeRequest;

use function Surus\Internal\parse_upload;

/**
 * The current request: a view of it that copies data only when it is read.
 *
 * It must not outlive its request: every method that reads from a request that has ended throws an Error.
 */
final class Request extends NativeRequest
{
    /** @var array<string, mixed> */
    private array $attributes = [];

    /** @var array<string, string>|null */
    private ?array $cookies = null;

    /** @var array{array<array-key, mixed>, array<array-key, mixed>}|null */
    private ?array $upload = null;

    /**
     * A value of a form, urlencoded or multipart; without a name, all values. Waits for the body.
     *
     * @return ($name is null ? array<array-key, mixed> : mixed)
     */
    public function form(?string $name = null, mixed $default = null): mixed
    {
        if ($this->contentType() !== 'multipart/form-data') {
            return parent::form($name, $default);
        }
        $fields = $this->upload()[0];

        return $name === null ? $fields : $fields[$name] ?? $default;
    }

    /**
     * The body as JSON; objects become arrays. Waits for the body.
     *
     * @throws InvalidJson if it is not JSON
     */
    public function json(): mixed
    {
        try {
            return parent::json();
        } catch (\JsonException $error) {
            throw new InvalidJson('The body is not JSON: ' . $error->getMessage(), $error->getCode(), $error);
        }
    }

    /** An uploaded file; null if the form has none under this name. */
    public function file(string $name): ?UploadedFile
    {
        $file = $this->files()[$name] ?? null;

        return $file instanceof UploadedFile ? $file : null;
    }

    /**
     * All uploaded files by name; several with one name, like `photos[]`, are an array.
     *
     * @return array<array-key, UploadedFile|array<array-key, mixed>>
     */
    public function files(): array
    {
        return $this->contentType() === 'multipart/form-data' ? $this->upload()[1] : [];
    }

    /** A cookie's value, decoded. */
    public function cookie(string $name, ?string $default = null): ?string
    {
        return $this->cookies()[$name] ?? $default;
    }

    /**
     * All cookies; of several with one name, the first: it has the most specific path.
     *
     * @return array<string, string>
     */
    public function cookies(): array
    {
        if ($this->cookies === null) {
            $this->cookies = [];
            foreach (explode(';', (string) $this->joined('cookie')) as $pair) {
                [$name, $value] = explode('=', trim($pair), 2) + [1 => null];
                if ($value !== null && $name !== '') {
                    $this->cookies[$name] ??= rawurldecode(trim($value, " \t\""));
                }
            }
        }

        return $this->cookies;
    }

    /** The type of the body, without parameters, in lower case; "" without one. */
    public function contentType(): string
    {
        return strtolower(trim(explode(';', (string) $this->header('content-type', ''), 2)[0]));
    }

    /** Host name and port, as the client sees them; "" if the client has sent none, or an invalid value. */
    public function host(): string
    {
        $host = strtolower((string) $this->header('host', ''));

        return preg_match('/^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/D', $host) === 1 ? $host : '';
    }

    /** @return 'http'|'https' as the client sees it */
    public function scheme(): string
    {
        return $this->server('HTTPS') === 'on' ? 'https' : 'http';
    }

    /** Whether the client uses HTTPS. */
    public function isSecure(): bool
    {
        return $this->scheme() === 'https';
    }

    /** The complete URL. */
    public function url(): string
    {
        return $this->scheme() . '://' . $this->host() . $this->uri();
    }

    /** The token of `Authorization: Bearer`. */
    public function bearer(): ?string
    {
        return preg_match('~^Bearer +([A-Za-z0-9._\~+/-]+=*) *$~Di', (string) $this->header('authorization', ''), $match) === 1 ? $match[1] : null;
    }

    /** Whether the client accepts this media type. */
    public function accepts(string $type): bool
    {
        return Negotiation::quality((string) $this->joined('accept'), $type) > 0;
    }

    /** The media type that the client prefers, the first of equal ones; null if it accepts none of these. */
    public function prefers(string ...$types): ?string
    {
        return Negotiation::best((string) $this->joined('accept'), array_values($types));
    }

    /** The language that the client prefers; the first one if it accepts none of these. */
    public function language(string $first, string ...$others): string
    {
        return Negotiation::language((string) $this->joined('accept-language'), [$first, ...array_values($others)]);
    }

    /** A value that middleware has set. */
    public function attribute(string $name, mixed $default = null): mixed
    {
        return $this->attributes[$name] ?? $default;
    }

    /** @return array<string, mixed> */
    public function attributes(): array
    {
        return $this->attributes;
    }

    /** Sets a value for inner middleware and the handler. */
    public function setAttribute(string $name, mixed $value): void
    {
        $this->attributes[$name] = $value;
    }

    /**
     * The body as it arrives, if it is too large for memory. body() does not contain data that was read this way.
     *
     * @return \Generator<int, string>
     */
    public function stream(): \Generator
    {
        while (($block = $this->read(65536)) !== '') {
            yield $block;
        }
    }

    private function joined(string $name): ?string
    {
        return $this->headers()[$name] ?? null;
    }

    /** @return array{array<array-key, mixed>, array<array-key, mixed>} fields and files */
    private function upload(): array
    {
        if ($this->upload === null) {
            [$fields, $files] = parse_upload();
            $this->upload = [$fields, array_map(
                static fn (array $file): UploadedFile|array => self::uploaded($file['tmp_name'], $file['name'], $file['type'], $file['size'], $file['error']),
                $files,
            )];
        }

        return $this->upload;
    }

    /** @return UploadedFile|array<array-key, mixed> */
    private static function uploaded(mixed $path, mixed $name, mixed $type, mixed $size, mixed $error): UploadedFile|array
    {
        if (!is_array($path)) {
            return new UploadedFile($path, $name, $type, (int) $size, (int) $error);
        }
        $files = [];
        foreach ($path as $key => $one) {
            $files[$key] = self::uploaded($one, $name[$key], $type[$key], $size[$key], $error[$key]);
        }

        return $files;
    }
}
