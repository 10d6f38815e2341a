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
 * Answers exceptions: the application's handlers, else problem+json or a page.
 *
 * @internal
 */
final class Errors
{
    /**
     * @param array<int|class-string, callable> $handlers
     * @param ?LoggerInterface $log the application's own; without it the server's
     */
    public function __construct(
        private readonly array $handlers,
        private readonly bool $dev,
        private readonly ?LoggerInterface $log,
    ) {
    }

    /** What a 404 of development suggests. */
    private ?NearestRoutes $nearest = null;

    public function suggest(NearestRoutes $nearest): void
    {
        $this->nearest = $nearest;
    }

    /** Whether the application answers this status itself. */
    public function has(int $status): bool
    {
        return isset($this->handlers[$status]) || isset($this->handlers[HttpException::class]);
    }

    /** Whether the application answers input itself that its class does not take. */
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

                // A page that says nothing about its status is an error's all the same.
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

    /** The status that an exception asks for with getStatusCode(). */
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

        // Who asks for another type gets another answer.
        return $this->negotiated($exception, $status, $request)->withListItem('vary', 'Accept');
    }

    private function negotiated(\Throwable $exception, int $status, Request $request): Response
    {
        $headers = $exception instanceof HttpException ? $exception->getHeaders() : [];
        $html = $request->prefers('application/json', 'text/html') === 'text/html';
        // Of a route that is there the exception says itself what is wrong.
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
        // What a client is told on purpose needs no trace.
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
