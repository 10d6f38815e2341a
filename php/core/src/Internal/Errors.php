<?php

declare(strict_types=1);

namespace Surus\Internal;

use Psr\Log\LoggerInterface;
use Surus\Http\HttpException;
use Surus\Http\InvalidJson;
use Surus\Http\Request;
use Surus\Http\Response;
use Surus\Schema\InvalidInput;

/**
 * Makes responses to exceptions: with the application's handlers, or as problem+json or a page.
 *
 * @internal
 */
final class Errors
{
    /**
     * @param array<int|class-string, callable> $handlers
     * @param ?LoggerInterface $log the application's log; null: the server's
     */
    public function __construct(
        private readonly array $handlers,
        private readonly bool $dev,
        private readonly ?LoggerInterface $log,
    ) {
    }

    /** The routes that a 404 suggests in development. */
    private ?NearestRoutes $nearest = null;

    public function suggest(NearestRoutes $nearest): void
    {
        $this->nearest = $nearest;
    }

    /** Whether the application has a handler for this status. */
    public function has(int $status): bool
    {
        return isset($this->handlers[$status]) || isset($this->handlers[HttpException::class]);
    }

    /** Whether the application has a handler for refused input. */
    public function hasInput(): bool
    {
        foreach (array_keys($this->handlers) as $key) {
            if (is_int($key) ? in_array($key, [400, 413, 415, 422], true) : is_a(InvalidInput::class, $key, true)) {
                return true;
            }
        }

        return false;
    }

    public function answer(\Throwable $exception, Request $request): Response
    {
        $status = self::status($exception);
        if ($status >= 500) {
            $this->report($exception);
        }
        foreach ($this->candidates($exception, $status) as $handler) {
            $result = $handler($exception, $request);
            if ($result !== null) {
                $response = Response::of($result);

                // A page without an explicit status gets the one of the error.
                return $response->status() === 200 ? $response->withStatus($status) : $response;
            }
        }

        return $this->plain($exception, $status, $request);
    }

    private function report(\Throwable $exception): void
    {
        if ($this->log === null) {
            report($exception);
            return;
        }
        try {
            $this->log->error($exception->getMessage(), ['exception' => $exception]);
        } catch (\Throwable $failure) {
            report($exception);
            report($failure);
        }
    }

    /** The status that an exception returns from getStatusCode(). */
    private static function status(\Throwable $exception): int
    {
        $status = method_exists($exception, 'getStatusCode') ? $exception->getStatusCode() : 500;

        return is_int($status) && $status >= 400 && $status <= 599 ? $status : 500;
    }

    /** @return iterable<callable> the class before its parents and interfaces, then the status */
    private function candidates(\Throwable $exception, int $status): iterable
    {
        $classes = [$exception::class, ...array_values(class_parents($exception)), ...array_values(class_implements($exception))];
        foreach ([...$classes, $status] as $key) {
            if (isset($this->handlers[$key])) {
                yield $this->handlers[$key];
            }
        }
    }

    private function plain(\Throwable $exception, int $status, Request $request): Response
    {
        if ($exception instanceof InvalidInput) {
            return $exception->response();
        }

        // The response depends on the type that the client accepts.
        return $this->negotiated($exception, $status, $request)->withListItem('vary', 'Accept');
    }

    private function negotiated(\Throwable $exception, int $status, Request $request): Response
    {
        $headers = $exception instanceof HttpException ? $exception->getHeaders() : [];
        $html = $request->prefers('application/json', 'text/html') === 'text/html';
        // If a route matched, the exception itself describes the error.
        $nearest = $exception instanceof NoRoute ? $this->nearest?->of($request) ?? [] : [];
        if ($this->dev && $html) {
            return ErrorPage::of($exception, $request, $status, $nearest, $headers);
        }
        $detail = $exception instanceof HttpException || $exception instanceof InvalidJson ? $exception->getMessage() : '';
        if ($html) {
            $title = $status . ' ' . Response::reason($status);
            $detail = htmlspecialchars($detail);

            return Response::html("<!doctype html><title>$title</title><h1>$title</h1><p>$detail</p>", $status, $headers);
        }
        $members = $detail === '' ? [] : ['detail' => $detail];
        // An intended error response needs no trace.
        if ($this->dev && !($exception instanceof HttpException && $status < 500)) {
            $members = ['exception' => $exception::class, 'detail' => $exception->getMessage(), 'trace' => (string) $exception];
        }
        if ($nearest !== []) {
            $members['routes'] = $nearest;
        }
        if ($exception instanceof HttpException) {
            $members += $exception->members;
        }

        return Response::problem($status, members: $members, headers: $headers);
    }
}
