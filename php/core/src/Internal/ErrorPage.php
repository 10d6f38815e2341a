<?php

declare(strict_types=1);

namespace Surus\Internal;

use Surus\Http\HttpException;
use Surus\Http\Request;
use Surus\Http\Response;

/**
 * The page about an exception, for developers.
 *
 * @internal
 */
final class ErrorPage
{
    private const STYLE = 'body{font:16px/1.5 system-ui,sans-serif;margin:0;color:#222;background:#f6f5f3}'
        . 'header{background:#7a1f1f;color:#fff;padding:1.5rem 2rem}h1{margin:0;font-size:1.3rem;font-weight:600}'
        . 'header p{margin:.3rem 0 0;opacity:.85}main{padding:1rem 2rem;max-width:72rem}'
        . 'pre{background:#fff;border:1px solid #ddd;padding:.5rem 1rem;overflow:auto;font-size:14px}'
        . 'pre .here{background:#fde8e8}summary{cursor:pointer;padding:.2rem 0}'
        . 'td{padding:.1rem 1rem .1rem 0;vertical-align:top;word-break:break-all}td:first-child{color:#666;white-space:nowrap}';

    /**
     * @param list<string> $nearest similar routes
     * @param array<string, string> $headers
     */
    public static function of(\Throwable $exception, Request $request, int $status, array $nearest, array $headers): Response
    {
        $causes = '';
        for ($one = $exception; $one !== null && !$one instanceof NoRoute; $one = $one->getPrevious()) {
            $causes .= self::cause($one, $one !== $exception);
        }
        $reason = $status . ' ' . Response::reason($status);
        $title = self::escape(self::headline($exception, $reason));
        $line = self::escape($request->method() . ' ' . $request->uri());
        $routes = $nearest === [] ? '' : '<h2>The nearest routes</h2><pre>' . implode("\n", array_map(self::escape(...), $nearest)) . '</pre>';
        $html = '<!doctype html><html lang="en"><meta charset="utf-8"><title>' . $title . '</title><style>' . self::STYLE . '</style>'
            . "<header><h1>$title</h1><p>$reason &middot; $line</p></header><main>$routes$causes"
            . '<h2>Request</h2>' . self::table($request) . '</main></html>';
        // The application's policy is made for its own pages.
        $policy = "default-src 'none'; style-src 'sha256-" . base64_encode(hash('sha256', self::STYLE, true)) . "'";

        return Response::html($html, $status, ['content-security-policy' => $policy] + array_change_key_case($headers));
    }

    private static function headline(\Throwable $exception, string $reason): string
    {
        $message = $exception->getMessage();

        return match (true) {
            !$exception instanceof HttpException => $exception::class . ': ' . $message,
            $message === '' => $reason,
            default => "$reason: $message",
        };
    }

    private static function cause(\Throwable $exception, bool $previous): string
    {
        $html = $previous ? '<h2>Caused by ' . self::escape($exception::class . ': ' . $exception->getMessage()) . '</h2>' : '';
        $html .= self::source($exception->getFile(), $exception->getLine(), true);
        foreach ($exception->getTrace() as $frame) {
            $call = ($frame['class'] ?? '') . ($frame['type'] ?? '') . $frame['function'] . '()';
            $place = isset($frame['file'], $frame['line']) ? self::source($frame['file'], $frame['line'], false) : '';
            $html .= $place === '' ? '' : '<details><summary>' . self::escape($call) . "</summary>$place</details>";
        }

        return $html;
    }

    private static function source(string $file, int $line, bool $always): string
    {
        $name = '<p>' . self::escape("$file:$line") . '</p>';
        $lines = is_file($file) ? file($file, FILE_IGNORE_NEW_LINES) : false;
        if ($lines === false) {
            return $always ? $name : '';
        }
        $html = '';
        for ($i = max(1, $line - 6); $i <= min(count($lines), $line + 6); $i++) {
            $class = $i === $line ? ' class="here"' : '';
            $html .= "<span$class>" . sprintf('%4d  ', $i) . self::escape($lines[$i - 1]) . "</span>\n";
        }

        return "$name<pre>$html</pre>";
    }

    private static function table(Request $request): string
    {
        $rows = '';
        foreach ($request->headers() as $name => $value) {
            // Do not show credentials on a screen that others may see.
            $value = in_array($name, ['cookie', 'authorization', 'proxy-authorization'], true) ? '…' : $value;
            $rows .= '<tr><td>' . self::escape((string) $name) . '<td>' . self::escape($value);
        }

        return "<table>$rows</table>";
    }

    private static function escape(string $text): string
    {
        return htmlspecialchars($text, ENT_QUOTES | ENT_SUBSTITUTE);
    }
}
