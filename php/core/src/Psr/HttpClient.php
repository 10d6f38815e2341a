<?php

declare(strict_types=1);

namespace Surus\Psr;

use Psr\Http\Client\ClientInterface;
use Psr\Http\Message\RequestInterface;
use Psr\Http\Message\ResponseFactoryInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Surus\Container;

/**
 * An HTTP client (PSR-18) on ext-curl. While one request waits, others go on: those of other tasks (Surus\all()), and other
 * requests of the server. All may share one client; connections are kept for the next request.
 *
 * It sends what it is given and returns what comes: redirects are not followed, errors of the server are responses, and the body is
 * not decompressed.
 */
final class HttpClient implements ClientInterface
{
    /** Idle handles, each with its open connections. */
    private const MOST_IDLE = 16;

    /** A body of a known size up to this is sent from memory. */
    private const SHORT = 1 << 20;

    /** Up to here a response is in memory, then in a temporary file. */
    private const IN_MEMORY = 2 << 20;

    private readonly ResponseFactoryInterface $responses;

    private readonly StreamFactoryInterface $streams;

    /** @var list<\CurlHandle> */
    private array $idle = [];

    /**
     * @param ResponseFactoryInterface|null $responses null: those of Nyholm, Guzzle, Laminas or Slim, whichever is installed
     * @param float $timeout seconds for the whole exchange; 0: no limit
     * @param float $connectTimeout seconds until the connection is there
     * @param int $maxBody bytes of a response's body
     * @param array<int, mixed> $options of curl, for proxies and certificates: what the request says comes first
     */
    public function __construct(
        ?ResponseFactoryInterface $responses = null,
        ?StreamFactoryInterface $streams = null,
        private readonly float $timeout = 30.0,
        private readonly float $connectTimeout = 10.0,
        private readonly int $maxBody = 256 << 20,
        private readonly array $options = [],
    ) {
        foreach (['timeout' => $timeout, 'connectTimeout' => $connectTimeout] as $name => $seconds) {
            if (!($seconds >= 0 && $seconds < 1e6)) {
                throw new \ValueError("HttpClient: \$$name is a time in seconds from 0 on, $seconds given");
            }
        }
        if ($maxBody < 0) {
            throw new \ValueError("HttpClient: \$maxBody is a number of bytes, $maxBody given");
        }
        if (\array_intersect_key($options, [\CURLOPT_COOKIEFILE => 1, \CURLOPT_COOKIEJAR => 1, \CURLOPT_COOKIELIST => 1]) !== []) {
            throw new \ValueError('HttpClient: cookies that curl keeps would be those of all requests; send a Cookie header');
        }
        $this->responses = $responses ?? Bridge::factory(new Container(), ResponseFactoryInterface::class, 'ResponseFactory');
        $this->streams = $streams ?? Bridge::factory(new Container(), StreamFactoryInterface::class, 'StreamFactory');
    }

    /**
     * @throws NetworkFailure if there is no response: the server is not reached, too slow, or breaks off
     * @throws RequestFailure if the request has no absolute URI of http or https, or what cannot be sent
     */
    public function sendRequest(RequestInterface $request): ResponseInterface
    {
        $options = $this->of($request);
        $body = \fopen('php://temp/maxmemory:' . self::IN_MEMORY, 'w+b');
        if ($body === false) {
            throw new NetworkFailure($request, 'There is no memory for a response');
        }
        $head = new ResponseHead();
        $length = 0;
        $options[\CURLOPT_HEADERFUNCTION] = static fn (\CurlHandle $_, string $line): int => $head->add($line);
        $options[\CURLOPT_WRITEFUNCTION] = function (\CurlHandle $_, string $bytes) use ($body, &$length): int {
            $length += \strlen($bytes);
            return $length > $this->maxBody ? 0 : (int) \fwrite($body, $bytes);
        };
        $curl = \array_pop($this->idle) ?? \curl_init();
        if ($curl === false || !\curl_setopt_array($curl, $options)) {
            throw new RequestFailure($request, 'curl does not take the request or the options of the client');
        }
        if (\curl_exec($curl) === false) {
            throw $this->failure($request, $curl, $length);
        }
        // One that was cut off is not used again.
        \curl_reset($curl);
        if (\count($this->idle) < self::MOST_IDLE) {
            $this->idle[] = $curl;
        }
        \rewind($body);
        try {
            $response = $head->response($this->responses);
        } catch (\InvalidArgumentException $error) {
            throw new NetworkFailure($request, 'The response cannot be represented: ' . $error->getMessage());
        }
        return $response->withBody($this->streams->createStreamFromResource($body));
    }

    private function failure(RequestInterface $request, \CurlHandle $curl, int $length): \Throwable
    {
        $what = "{$request->getMethod()} {$request->getUri()->withUserInfo('')->withQuery('')}";
        $why = $length > $this->maxBody ? "the body is longer than $this->maxBody bytes" : \curl_error($curl);
        return new NetworkFailure($request, "$what: $why", \curl_errno($curl));
    }

    /** @return array<int, mixed> */
    private function of(RequestInterface $request): array
    {
        $uri = $request->getUri();
        $method = $request->getMethod();
        if (!\in_array($uri->getScheme(), ['http', 'https'], true) || $uri->getHost() === '') {
            throw new RequestFailure($request, "A request needs an absolute URI of http or https, and has \"{$uri->withUserInfo('')}\"");
        }
        if (\preg_match('/^[!#$%&\'*+.^_`|~0-9A-Za-z-]+$/D', $method) !== 1 || \strcasecmp($method, 'CONNECT') === 0) {
            throw new RequestFailure($request, "The method \"$method\" cannot be sent");
        }
        $options = [
            \CURLOPT_URL => (string) $uri->withFragment(''),
            \CURLOPT_CUSTOMREQUEST => $method,
            \CURLOPT_NOBODY => $method === 'HEAD',
            \CURLOPT_HTTPHEADER => self::headers($request),
            \CURLOPT_HTTP_VERSION => self::version($request),
            \CURLOPT_PROTOCOLS => \CURLPROTO_HTTP | \CURLPROTO_HTTPS,
            \CURLOPT_FOLLOWLOCATION => false,
            \CURLOPT_PATH_AS_IS => true,
            \CURLOPT_SUPPRESS_CONNECT_HEADERS => true,
            \CURLOPT_TIMEOUT_MS => (int) \ceil($this->timeout * 1000),
            \CURLOPT_CONNECTTIMEOUT_MS => (int) \ceil($this->connectTimeout * 1000),
            \CURLOPT_NOSIGNAL => true,
        ] + self::target($request);
        return $options + self::body($request) + $this->options;
    }

    /** @return array<int, mixed> */
    private static function target(RequestInterface $request): array
    {
        $target = $request->getRequestTarget();
        $uri = $request->getUri();
        $own = ($uri->getPath() === '' ? '/' : $uri->getPath()) . ($uri->getQuery() === '' ? '' : '?' . $uri->getQuery());
        if ($target === $own) {
            return [];
        }
        if (\preg_match('/[\x00-\x20\x7f]/', $target) === 1) {
            throw new RequestFailure($request, 'The target of the request has blanks or control characters');
        }
        return [\CURLOPT_REQUEST_TARGET => $target];
    }

    /** @return list<string> */
    private static function headers(RequestInterface $request): array
    {
        // What curl would add by itself.
        $lines = ['Expect:'];
        foreach (['Accept', 'Content-Type'] as $name) {
            if (!$request->hasHeader($name)) {
                $lines[] = "$name:";
            }
        }
        foreach ($request->getHeaders() as $name => $values) {
            // These are for the body, which has its own length.
            if (\in_array(\strtolower((string) $name), ['content-length', 'transfer-encoding', 'expect'], true)) {
                continue;
            }
            foreach ($values as $value) {
                if (\preg_match('/[\r\n\0]/', $name . $value) === 1) {
                    throw new RequestFailure($request, "The header \"$name\" has a line break");
                }
                $lines[] = $value === '' ? "$name;" : "$name: $value";
            }
        }
        return $lines;
    }

    private static function version(RequestInterface $request): int
    {
        return match ($request->getProtocolVersion()) {
            '1.0' => \CURL_HTTP_VERSION_1_0,
            '2', '2.0' => \CURL_HTTP_VERSION_2TLS,
            default => \CURL_HTTP_VERSION_1_1,
        };
    }

    /** @return array<int, mixed> */
    private static function body(RequestInterface $request): array
    {
        $body = $request->getBody();
        $size = $body->getSize();
        if ($body->isSeekable()) {
            $body->rewind();
        }
        if ($size !== null && $size <= self::SHORT) {
            $text = $size === 0 ? '' : $body->getContents();
            $has_none = $text === '' && !\in_array($request->getMethod(), ['POST', 'PUT', 'PATCH'], true);
            return $has_none ? [] : [\CURLOPT_POSTFIELDS => $text];
        }
        return [
            \CURLOPT_UPLOAD => true,
            // On a connection that has gone meanwhile, curl would begin again in the middle of the stream.
            \CURLOPT_FRESH_CONNECT => true,
            \CURLOPT_READFUNCTION => static fn (\CurlHandle $_, mixed $stream, int $most): string => $body->eof() ? '' : $body->read($most),
        ] + ($size === null ? [] : [\CURLOPT_INFILESIZE => $size]);
    }
}
