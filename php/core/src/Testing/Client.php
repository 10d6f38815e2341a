<?php

declare(strict_types=1);

namespace Surus\Testing;

use Surus\App;

/**
 * A client for tests: it keeps cookies, follows no redirects, and reports failed assertions with the response.
 *
 * `Client::of($app)` calls an application in this process, in a script that `surus php` runs: a test can declare
 * replacements of services before, and check what a handler has changed afterwards. `Client::serve($path)` starts a
 * server, `new Client($url)` uses a running one.
 */
final class Client
{
    /** @var array<string, string> */
    private array $cookies = [];

    private int $assertions = 0;
    private readonly Transport $transport;

    /** @param string|Transport $to the address of a server: "http://127.0.0.1:8080" */
    public function __construct(string|Transport $to)
    {
        $this->transport = is_string($to) ? new OverHttp($to) : $to;
    }

    /**
     * A client of an application in this process, with the routes that it has now.
     *
     * @throws \Surus\BootError if it would not boot
     */
    public static function of(App $app): self
    {
        return new self(new InProcess($app));
    }

    /**
     * Starts a server for an application; it is stopped together with the client.
     *
     * @param string $path as for `surus serve`
     */
    public static function serve(string $path, ?string $binary = null): self
    {
        $binary ??= getenv('SURUS_BIN') ?: (is_executable('/proc/self/exe') ? (string) readlink('/proc/self/exe') : 'surus');

        return new self(OverHttp::serve($path, $binary));
    }

    /** @param array<string, string> $headers */
    public function get(string $path, array $headers = []): TestResponse
    {
        return $this->request('GET', $path, $headers);
    }

    /**
     * @param array<string, mixed>|null $form
     * @param array<string, string> $headers
     * @param array<string, string> $files paths of files that the form uploads, by field
     */
    public function post(string $path, mixed $json = null, ?array $form = null, array $headers = [], array $files = []): TestResponse
    {
        return $this->request('POST', $path, $headers, $json, $form, $files);
    }

    /** @param array<string, string> $headers */
    public function put(string $path, mixed $json = null, array $headers = []): TestResponse
    {
        return $this->request('PUT', $path, $headers, $json);
    }

    /** @param array<string, string> $headers */
    public function patch(string $path, mixed $json = null, array $headers = []): TestResponse
    {
        return $this->request('PATCH', $path, $headers, $json);
    }

    /** @param array<string, string> $headers */
    public function delete(string $path, array $headers = []): TestResponse
    {
        return $this->request('DELETE', $path, $headers);
    }

    /**
     * @param array<string, string> $headers
     * @param array<string, mixed>|null $form
     * @param array<string, string> $files paths of files that the form uploads, by field
     */
    public function request(
        string $method,
        string $path,
        array $headers = [],
        mixed $json = null,
        ?array $form = null,
        array $files = [],
    ): TestResponse {
        [$type, $body] = self::body($json, $form, $files);
        if ($type !== null) {
            $headers += ['Content-Type' => $type];
        }
        if ($this->cookies !== []) {
            $pairs = array_map(static fn (string $name, string $value): string => "$name=$value", array_keys($this->cookies), $this->cookies);
            $headers += ['Cookie' => implode('; ', $pairs)];
        }
        $lines = array_map(static fn (string $name, string $value): string => "$name: $value", array_keys($headers), $headers);
        [$status, $head, $content] = $this->transport->send($method, $path, $lines, $body);

        return $this->understand("$method $path", $status, $head, $content);
    }

    /** The number of assertions on responses that have succeeded. */
    public function assertions(): int
    {
        return $this->assertions;
    }

    /**
     * @param array<string, mixed>|null $form
     * @param array<string, string> $files
     *
     * @return array{?string, string} type and text
     */
    private static function body(mixed $json, ?array $form, array $files): array
    {
        if ($files !== []) {
            return self::multipart($form ?? [], $files);
        }
        if ($form !== null) {
            return ['application/x-www-form-urlencoded', http_build_query($form)];
        }

        return $json === null ? [null, ''] : ['application/json', json_encode($json, JSON_THROW_ON_ERROR)];
    }

    /**
     * @param array<string, mixed> $form
     * @param array<string, string> $files
     *
     * @return array{string, string}
     */
    private static function multipart(array $form, array $files): array
    {
        $boundary = 'surus-' . bin2hex(random_bytes(12));
        $body = '';
        foreach ($form === [] ? [] : explode('&', http_build_query($form)) as $pair) {
            [$name, $value] = array_map(urldecode(...), explode('=', $pair, 2) + [1 => '']);
            $body .= "--$boundary\r\nContent-Disposition: form-data; name=\"" . addcslashes($name, "\"\\") . "\"\r\n\r\n$value\r\n";
        }
        foreach ($files as $name => $path) {
            $content = file_get_contents($path);
            if ($content === false) {
                throw new \InvalidArgumentException("There is no file $path to upload");
            }
            $type = mime_content_type($path) ?: 'application/octet-stream';
            $body .= "--$boundary\r\nContent-Disposition: form-data; name=\"" . addcslashes($name, "\"\\") . '"; filename="'
                . addcslashes(basename($path), "\"\\") . "\"\r\nContent-Type: $type\r\n\r\n$content\r\n";
        }

        return ["multipart/form-data; boundary=$boundary", "$body--$boundary--\r\n"];
    }

    /** @param list<string> $head */
    private function understand(string $what, int $status, array $head, string $body): TestResponse
    {
        $headers = [];
        foreach ($head as $line) {
            [$name, $value] = array_map(trim(...), explode(':', $line, 2) + [1 => '']);
            $headers[strtolower($name)][] = $value;
        }
        foreach ($headers['set-cookie'] ?? [] as $cookie) {
            [$name, $value] = explode('=', explode(';', $cookie, 2)[0], 2) + [1 => ''];
            if (stripos($cookie, 'max-age=0') === false) {
                $this->cookies[$name] = $value;
            } else {
                unset($this->cookies[$name]);
            }
        }

        return new TestResponse($what, $status, $headers, $body, function (): void {
            $this->assertions++;
        });
    }
}
