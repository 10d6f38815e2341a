<?php

declare(strict_types=1);

namespace Surus\Testing;

/**
 * Sends requests to a server, which may be started by the client.
 *
 * @internal
 */
final class OverHttp implements Transport
{
    /** @param resource|null $process the server, if it is stopped together with the client */
    public function __construct(private readonly string $base, private $process = null)
    {
    }

    /**
     * Starts a server on a free port of this machine.
     *
     * @throws \RuntimeException if it does not start, or the application does not boot
     */
    public static function serve(string $path, string $binary): self
    {
        $socket = stream_socket_server('tcp://127.0.0.1:0') ?: throw new \RuntimeException('There is no free port');
        $address = (string) stream_socket_get_name($socket, false);
        fclose($socket);
        // The application gets the environment of its test.
        $environment = getenv() + ['SURUS_CLEAR_ENV' => 'false'];
        $process = proc_open([$binary, 'serve', $path, '--workers', '1', '--listen', $address], [1 => ['pipe', 'w']], $pipes, null, $environment);
        if ($process === false) {
            throw new \RuntimeException("$binary does not start");
        }
        // The server reports that it is ready, or exits.
        do {
            $line = fgets($pipes[1]);
        } while ($line !== false && !str_starts_with($line, 'surus ready'));
        $transport = new self("http://$address", $process);

        return $line === false ? throw new \RuntimeException('The application does not boot') : $transport;
    }

    public function __destruct()
    {
        if ($this->process !== null) {
            proc_terminate($this->process);
            proc_close($this->process);
        }
    }

    public function send(string $method, string $target, array $head, string $body): array
    {
        $context = stream_context_create(['http' => [
            'method' => $method, 'header' => $head, 'content' => $body, 'ignore_errors' => true, 'follow_location' => 0, 'timeout' => 30,
        ]]);
        $content = file_get_contents($this->base . $target, false, $context);
        if ($content === false) {
            throw new \RuntimeException("$method $target: no answer");
        }
        $lines = $http_response_header;
        $status = (int) (explode(' ', array_shift($lines) ?? '', 3)[1] ?? 0);

        return [$status, $lines, $content];
    }
}
