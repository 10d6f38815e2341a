<?php

declare(strict_types=1);

namespace Surus\Testing;

/** An HTTP client for tests: it keeps cookies, follows nothing, and says what it expected. */
final class Client
{
    /** @var array<string, string> */
    private array $cookies = [];

    private int $assertions = 0;

    /** @var resource|null the server, if it is this client's */
    private $process = null;

    public function __construct(private readonly string $base)
    {
    }

    /**
     * Starts a server for an application; it ends with the client.
     *
     * @param string $path what `surus serve` takes
     */
    public static function serve(string $path, ?string $binary = null): self
    {
        $binary ??= getenv('SURUS_BIN') ?: (is_executable('/proc/self/exe') ? (string) readlink('/proc/self/exe') : 'surus');
        $socket = stream_socket_server('tcp://127.0.0.1:0') ?: throw new \RuntimeException('There is no free port');
        $address = (string) stream_socket_get_name($socket, false);
        fclose($socket);
        $process = proc_open([$binary, 'serve', $path, '--workers', '1', '--listen', $address], [1 => ['pipe', 'w']], $pipes);
        if ($process === false) {
            throw new \RuntimeException("$binary does not start");
        }
        // It says that it is ready, or ends.
        do {
            $line = fgets($pipes[1]);
        } while ($line !== false && !str_starts_with($line, 'surus ready'));
        $client = new self("http://$address");
        $client->process = $process;

        return $line === false ? throw new \RuntimeException('The application does not boot') : $client;
    }

    public function __destruct()
    {
        if ($this->process !== null) {
            proc_terminate($this->process);
            proc_close($this->process);
        }
    }

    /** @param array<string, string> $headers */
    public function get(string $path, array $headers = []): TestResponse
    {
        return $this->request('GET', $path, $headers);
    }

    /**
     * @param array<string, mixed>|null $form
     * @param array<string, string> $headers
     */
    public function post(string $path, mixed $json = null, ?array $form = null, array $headers = []): TestResponse
    {
        return $this->request('POST', $path, $headers, $json, $form);
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
     */
    public function request(string $method, string $path, array $headers = [], mixed $json = null, ?array $form = null): TestResponse
    {
        $body = '';
        if ($form !== null) {
            $body = http_build_query($form);
            $headers += ['Content-Type' => 'application/x-www-form-urlencoded'];
        } elseif ($json !== null) {
            $body = json_encode($json, JSON_THROW_ON_ERROR);
            $headers += ['Content-Type' => 'application/json'];
        }
        if ($this->cookies !== []) {
            $pairs = array_map(static fn (string $name, string $value): string => "$name=$value", array_keys($this->cookies), $this->cookies);
            $headers += ['Cookie' => implode('; ', $pairs)];
        }
        $lines = array_map(static fn (string $name, string $value): string => "$name: $value", array_keys($headers), $headers);
        $context = stream_context_create(['http' => [
            'method' => $method, 'header' => $lines, 'content' => $body, 'ignore_errors' => true, 'follow_location' => 0, 'timeout' => 30,
        ]]);
        $content = file_get_contents($this->base . $path, false, $context);
        if ($content === false) {
            throw new \RuntimeException("$method $path: no answer");
        }

        return $this->understand("$method $path", $http_response_header, $content);
    }

    /** How many assertions on responses have held. */
    public function assertions(): int
    {
        return $this->assertions;
    }

    /** @param list<string> $head */
    private function understand(string $what, array $head, string $body): TestResponse
    {
        $status = (int) (explode(' ', $head[0], 3)[1] ?? 0);
        $headers = [];
        foreach (array_slice($head, 1) as $line) {
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
