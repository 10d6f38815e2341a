<?php

/** Streams and sockets to a server that repeats each line. */

declare(strict_types=1);

/**
 * @param resource $stream
 * @param int $pause milliseconds between a question and its answer, in which another request may come
 */
function lineTalk($stream, Exchange $exchange, int $words, int $pause = 0): void
{
    for ($i = 0; $i < $words; $i++) {
        $line = "{$exchange->delay} {$exchange->word()}\n";
        if (fwrite($stream, $line) !== strlen($line)) {
            throw new RuntimeException('the line is not sent');
        }
        usleep($pause * 1000);
        $exchange->hear(line(fgets($stream)));
    }
}

/**
 * A whole line: PHP does not say that one has come to an early end.
 */
function line(mixed $text): string
{
    if (!is_string($text) || !str_ends_with($text, "\n")) {
        throw new RuntimeException('the line is not whole');
    }

    return trim($text);
}

/** @return resource */
function lineStream(int $flags = STREAM_CLIENT_CONNECT)
{
    $address = 'tcp://127.0.0.1:' . port('LINES');

    return expect(stream_socket_client($address, $code, $message, 10, $flags), 'connect');
}

return [
    'stream' => static fn (Exchange $exchange) => lineTalk(lineStream(), $exchange, 3),
    'persistent' => static function (Exchange $exchange): void {
        lineTalk(expect(pfsockopen('127.0.0.1', port('LINES'), $code, $message, 10), 'pfsockopen'), $exchange, 3);
    },
    'persistent_client' => static function (Exchange $exchange): void {
        lineTalk(lineStream(STREAM_CLIENT_CONNECT | STREAM_CLIENT_PERSISTENT), $exchange, 3);
    },
    'shared' => static function (Exchange $exchange): void {
        static $stream = null;
        try {
            if ($stream !== null && feof($stream)) {
                $stream = null;
            }
            $stream ??= lineStream();
            lineTalk($stream, $exchange, 3, $exchange->delay + 1);
        } catch (RuntimeException $error) {
            $stream = null;
            throw $error;
        }
    },
    'select' => static function (Exchange $exchange): void {
        $streams = [];
        foreach ([0, 1] as $i) {
            $streams[$i] = lineStream();
            fwrite($streams[$i], "{$exchange->delay} {$exchange->word()}\n");
        }
        $heard = [];
        while ($streams !== []) {
            $read = $streams;
            $write = $except = null;
            if (!stream_select($read, $write, $except, 15)) {
                throw new RuntimeException('stream_select: nothing comes');
            }
            foreach (array_keys($read) as $i) {
                $heard[$i] = line(fgets($streams[$i]));
                unset($streams[$i]);
            }
        }
        $exchange->hear($heard[0]);
        $exchange->hear($heard[1]);
    },
    'socket' => static function (Exchange $exchange): void {
        $socket = expect(socket_create(AF_INET, SOCK_STREAM, SOL_TCP), 'socket_create');
        expect(socket_connect($socket, '127.0.0.1', port('LINES')), 'socket_connect');
        for ($i = 0; $i < 3; $i++) {
            expect(socket_write($socket, "{$exchange->delay} {$exchange->word()}\n"), 'socket_write');
            $read = [$socket];
            $write = $except = null;
            if (!socket_select($read, $write, $except, 15)) {
                throw new RuntimeException('socket_select: nothing comes');
            }
            $exchange->hear(line(socket_read($socket, 200, PHP_NORMAL_READ)));
        }
    },
];
