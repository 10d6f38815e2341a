<?php

declare(strict_types=1);

namespace Surus\Psr;

use Psr\Http\Message\ResponseFactoryInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestFactoryInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Message\UploadedFileFactoryInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Surus\BootError;
use Surus\Container;
use Surus\Http\Request;
use Surus\Http\Response;
use Surus\Http\UploadedFile;

/**
 * Converts between Surus and PSR-7, PSR-15 and PSR-17.
 *
 * The factories are from the container, or those of Nyholm, Guzzle, Laminas or Slim, whichever is installed.
 */
final class Bridge
{
    private const FACTORIES = [
        'Nyholm\Psr7\Factory\Psr17Factory', 'GuzzleHttp\Psr7\HttpFactory', 'HttpSoft\Message\ServerRequestFactory',
        'Laminas\Diactoros\ServerRequestFactory', 'Slim\Psr7\Factory\ServerRequestFactory',
    ];

    private readonly ServerRequestFactoryInterface $requests;
    private readonly ResponseFactoryInterface $responses;
    private readonly StreamFactoryInterface $streams;
    private readonly UploadedFileFactoryInterface $files;

    public function __construct(Container $container)
    {
        $this->requests = self::factory($container, ServerRequestFactoryInterface::class, 'ServerRequestFactory');
        $this->responses = self::factory($container, ResponseFactoryInterface::class, 'ResponseFactory');
        $this->streams = self::factory($container, StreamFactoryInterface::class, 'StreamFactory');
        $this->files = self::factory($container, UploadedFileFactoryInterface::class, 'UploadedFileFactory');
    }

    /** Whether it is a PSR-15 handler, or the name of such a class. */
    public static function isHandler(object|string $what): bool
    {
        return is_a($what, RequestHandlerInterface::class, true);
    }

    /** Whether it is a PSR-15 middleware. */
    public static function isMiddleware(object $what): bool
    {
        return $what instanceof MiddlewareInterface;
    }

    /** The request as a PSR-7 request. Attributes and path parameters become its attributes. */
    public function request(Request $request): ServerRequestInterface
    {
        $psr = $this->requests->createServerRequest($request->method(), $request->url(), $request->variables());
        foreach ($request->headers() as $name => $value) {
            $psr = $psr->withHeader((string) $name, $value);
        }
        $psr = $psr->withCookieParams($request->cookies())->withQueryParams($request->query());
        if (in_array($request->contentType(), ['application/x-www-form-urlencoded', 'multipart/form-data'], true)) {
            $psr = $psr->withParsedBody($request->form())->withUploadedFiles($this->uploads($request->files()));
        }
        $psr = $psr->withBody($this->streams->createStream($request->body()));
        foreach ($request->params() + $request->attributes() as $name => $value) {
            $psr = $psr->withAttribute((string) $name, $value);
        }

        return $psr;
    }

    /** A PSR-7 response as a Surus response; its body is read while it is sent. */
    public static function response(ResponseInterface $psr): Response
    {
        $headers = array_map(
            static fn (array $values): array|string => count($values) === 1 ? (string) reset($values) : array_values($values),
            $psr->getHeaders(),
        );
        $body = $psr->getBody();
        $size = $body->getSize();
        $content = $size === null || $size > 256 * 1024 ? self::read($psr) : (string) $body;

        return new Response($content, $psr->getStatusCode(), $headers, $psr instanceof ResponseWithTrailers ? $psr->trailers : []);
    }

    /**
     * @internal
     *
     * @return \Closure(Request, \Closure(Request): Response): Response
     */
    public function middleware(MiddlewareInterface $middleware): \Closure
    {
        return fn (Request $request, \Closure $next): Response
            => self::response($middleware->process($this->request($request), new Next($this, $request, $next)));
    }

    /** A Surus response as a PSR-7 response. */
    public function psrResponse(Response $response): ResponseInterface
    {
        $psr = $this->responses->createResponse($response->status());
        foreach ($response->headers() as $name => $value) {
            $psr = $psr->withHeader((string) $name, $value);
        }
        $body = $response->body();

        $psr = $psr->withBody(is_string($body) || $body === null
            ? $this->streams->createStream((string) $body)
            : new IterableStream($body));

        return $response->trailers() === [] ? $psr : new ResponseWithTrailers($psr, $response->trailers());
    }

    /**
     * @param array<array-key, UploadedFile|array<array-key, mixed>> $files
     *
     * @return array<array-key, mixed>
     */
    private function uploads(array $files): array
    {
        return array_map(fn (UploadedFile|array $file): mixed => is_array($file) ? $this->uploads($file) : $this->files->createUploadedFile(
            $file->isValid() ? $this->streams->createStreamFromFile($file->path()) : $this->streams->createStream(''),
            $file->size(),
            $file->error(),
            $file->clientName(),
            $file->clientType(),
        ), $files);
    }

    /** @return \Generator<int, string> */
    private static function read(ResponseInterface $psr): \Generator
    {
        $body = $psr->getBody();
        if ($body->isSeekable()) {
            $body->rewind();
        }
        while (!$body->eof()) {
            $block = $body->read(64 * 1024);
            if ($block !== '') {
                yield $block;
            }
        }
    }

    /**
     * @internal
     *
     * @template T of object
     *
     * @param class-string<T> $interface
     *
     * @return T
     */
    public static function factory(Container $container, string $interface, string $name): object
    {
        if ($container->has($interface)) {
            return $container->get($interface);
        }
        foreach (self::FACTORIES as $class) {
            $class = str_replace('ServerRequestFactory', $name, $class);
            if (class_exists($class) && is_a($class, $interface, true)) {
                return new $class();
            }
        }
        throw new BootError("PSR-7 needs factories (PSR-17): install nyholm/psr7, or declare the service $interface");
    }
}
