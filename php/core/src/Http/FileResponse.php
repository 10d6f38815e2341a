<?php

declare(strict_types=1);

namespace Surus\Http;

use function Surus\Internal\request_header;

/**
 * Responses with files (RFC 9110): validators, conditions, one range.
 *
 * @internal
 */
final class FileResponse
{
    /** The number of bytes that are read and sent at a time. */
    private const BLOCK = 128 * 1024;

    /* Types that matter to browsers; other types are detected from the content. */
    private const TYPES = [
        'css' => 'text/css; charset=UTF-8', 'csv' => 'text/csv; charset=UTF-8', 'html' => 'text/html; charset=UTF-8',
        'js' => 'text/javascript; charset=UTF-8', 'json' => 'application/json', 'md' => 'text/markdown; charset=UTF-8',
        'mjs' => 'text/javascript; charset=UTF-8', 'svg' => 'image/svg+xml', 'txt' => 'text/plain; charset=UTF-8',
        'wasm' => 'application/wasm', 'webmanifest' => 'application/manifest+json', 'woff2' => 'font/woff2', 'xml' => 'application/xml',
    ];

    /** @param array<string, string|list<string>> $headers */
    public static function make(string $path, array $headers): Response
    {
        $file = str_contains($path, "\0") || !is_file($path) ? false : @fopen($path, 'rb');
        if ($file === false) {
            throw new HttpException(404);
        }
        $stat = (array) fstat($file);
        [$size, $modified] = [(int) $stat['size'], (int) $stat['mtime']];
        $etag = sprintf('"%x-%x-%x"', (int) $stat['ino'], $modified, $size);
        $headers = array_change_key_case($headers) + [
            'content-type' => self::type($path),
            'etag' => $etag,
            'last-modified' => gmdate('D, d M Y H:i:s', $modified) . ' GMT',
            'accept-ranges' => 'bytes',
            'x-content-type-options' => 'nosniff',
        ];
        if (self::isFresh($etag, $modified)) {
            return new Response(null, 304, array_diff_key($headers, ['content-type' => 1]));
        }
        $range = self::range($size, $etag, $modified);
        if ($range === null) {
            return new Response(null, 416, ['content-range' => "bytes */$size"]);
        }
        [$from, $to] = $range;
        $length = $to - $from + 1;
        $headers['content-length'] = (string) $length;
        if ($length < $size) {
            $headers['content-range'] = "bytes $from-$to/$size";
        }

        return new Response(self::read($file, $from, $length), $length < $size ? 206 : 200, $headers);
    }

    private static function type(string $path): string
    {
        $extension = strtolower(pathinfo($path, PATHINFO_EXTENSION));

        return self::TYPES[$extension] ?? (@mime_content_type($path) ?: 'application/octet-stream');
    }

    private static function isFresh(string $etag, int $modified): bool
    {
        $wanted = request_header('if-none-match');
        if ($wanted !== null) {
            return ETags::matches($wanted, $etag);
        }
        $since = strtotime(request_header('if-modified-since') ?? '');

        return $since !== false && $modified <= $since;
    }

    /** @return array{int, int}|null the first and the last byte; null if the requested range is not in the file */
    private static function range(int $size, string $etag, int $modified): ?array
    {
        $all = [0, $size - 1];
        $range = request_header('range');
        // Several ranges could request the same bytes many times: the answer is the whole file, once.
        if ($range === null || preg_match('/^bytes=(\d{0,18})-(\d{0,18})$/D', $range, $match) !== 1 || $range === 'bytes=-') {
            return $all;
        }
        $condition = request_header('if-range');
        if ($condition !== null && $condition !== $etag && strtotime($condition) !== $modified) {
            return $all;
        }
        [, $from, $to] = $match;
        if ($from === '') {
            return (int) $to === 0 || $size === 0 ? null : [max(0, $size - (int) $to), $size - 1];
        }
        $last = $to === '' ? $size - 1 : min((int) $to, $size - 1);
        if ($to !== '' && (int) $to < (int) $from) {
            return $all;
        }

        return (int) $from >= $size ? null : [(int) $from, $last];
    }

    /**
     * @param resource $file
     *
     * @return \Generator<int, string>
     */
    private static function read($file, int $from, int $length): \Generator
    {
        fseek($file, $from);
        while ($length > 0) {
            $block = (string) fread($file, min(self::BLOCK, $length));
            if ($block === '') {
                return;
            }
            $length -= strlen($block);
            yield $block;
        }
    }
}
