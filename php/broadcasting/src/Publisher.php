<?php

declare(strict_types=1);

namespace Surus\Broadcasting;

use Surus\Internal\ChannelResult;

use function Surus\Internal\channel_publish;

/** Publishes events for clients of the Pusher protocol: at once where the server runs this code, elsewhere over its HTTP API. */
final class Publisher
{
    /** Channels of one request. */
    private const MOST_CHANNELS = 100;

    /** Seconds. */
    private const TIMEOUT = 10;

    /**
     * @param string $appId `id` of `[pusher.NAME]`
     * @param string $url of the server, for code that it does not run: a worker of queues, a command
     * @param string $prefix `prefix` of `[pusher.NAME]`
     */
    public function __construct(
        private readonly Credentials $credentials,
        private readonly string $appId,
        private readonly string $url = 'http://127.0.0.1:8080',
        private readonly string $prefix = '',
    ) {
    }

    /**
     * @param list<string> $channels
     * @param string $event at most 200 bytes
     * @param mixed $data JSON of it is the data of the event
     * @param ?string $except the name of a connection that does not get it (`X-Socket-ID` of Echo)
     *
     * @throws BroadcastFailure if it cannot be published
     * @throws \JsonException if $data cannot be JSON
     */
    public function publish(array $channels, string $event, mixed $data, ?string $except = null): void
    {
        $except = preg_match('/^\d{1,19}\.\d{1,19}$/D', (string) $except) === 1 ? (string) $except : '';
        foreach ($channels as $place => $channel) {
            $position = '';
            $result = function_exists('Surus\Internal\channel_publish')
                ? channel_publish($this->prefix . $channel, $this->credentials->data($channel, $data), false, $event, $except, $position)
                : ChannelResult::NO_SERVER;
            if ($result === ChannelResult::NO_SERVER) {
                $this->send(array_slice($channels, $place), $event, $data, $except);

                return;
            }
            try {
                ChannelResult::check($result, $channel);
            } catch (\Throwable $error) {
                throw new BroadcastFailure("$event: {$error->getMessage()}", previous: $error);
            }
        }
    }

    /** @param list<string> $channels */
    private function send(array $channels, string $event, mixed $data, string $except): void
    {
        // What is encrypted is another text in each channel.
        $open = array_values(array_filter($channels, static fn (string $channel): bool => !Credentials::isEncrypted($channel)));
        $parts = array_chunk($open, self::MOST_CHANNELS);
        foreach (array_diff($channels, $open) as $channel) {
            $parts[] = [$channel];
        }
        foreach ($parts as $part) {
            $body = ['name' => $event, 'channels' => $part, 'data' => $this->credentials->data($part[0], $data)];
            $this->post(json_encode($body + ($except === '' ? [] : ['socket_id' => $except]), JSON_THROW_ON_ERROR));
        }
    }

    private function post(string $body): void
    {
        $path = "/apps/$this->appId/events";
        $context = stream_context_create(['http' => [
            'method' => 'POST',
            'header' => ['Content-Type: application/json', 'Connection: close'],
            'content' => $body,
            'ignore_errors' => true,
            'timeout' => self::TIMEOUT,
        ]]);
        $url = rtrim($this->url, '/') . $path;
        $stream = @fopen("$url?" . $this->credentials->query('POST', $path, $body), 'r', false, $context);
        [$answer, $status] = ['', null];
        if ($stream !== false) {
            $answer = (string) stream_get_contents($stream);
            // Not $http_response_header: PHP 8.5 deprecates it.
            $head = stream_get_meta_data($stream)['wrapper_data'] ?? null;
            $line = is_array($head) ? $head[0] ?? null : null;
            $status = is_string($line) ? $line : null;
            fclose($stream);
        }
        if ($status === null || preg_match('~^HTTP/\S+ 200\b~', $status) !== 1) {
            // PHP's message has the address with its signature, which is no text for logs.
            $why = $status === null
                ? (string) preg_replace('/^.*\): /s', '', error_get_last()['message'] ?? 'no answer')
                : "$status: " . substr($answer, 0, 200);
            throw new BroadcastFailure("$url: $why");
        }
    }
}
