<?php

/**
 * What the requests of the stress test do. Each case is given the request's number and answers with it, so that an
 * answer that belongs to another request is seen. src/cases.rs knows what each answers.
 */

declare(strict_types=1);

final class StressError extends RuntimeException
{
}

final class ParksAtTheEnd
{
    public function __construct(private readonly int $microseconds)
    {
    }

    public function __destruct()
    {
        usleep($this->microseconds);
    }
}

final class Counter
{
    private static int $made = 0;

    public ?Counter $other = null;

    public function __construct(public readonly string $id)
    {
        self::$made++;
    }

    public function __destruct()
    {
        self::$made--;
    }
}

/** A user's stream filter, whose object belongs to the request. */
final class Upper extends php_user_filter
{
    public function filter($in, $out, &$consumed, bool $closing): int
    {
        while ($bucket = stream_bucket_make_writeable($in)) {
            $bucket->data = strtoupper($bucket->data);
            $consumed += $bucket->datalen;
            stream_bucket_append($out, $bucket);
        }

        return PSFS_PASS_ON;
    }
}

function deeper(int $depth): int
{
    return deeper($depth + 1) + 1;
}

/** Recursion through an internal function uses up the C stack. */
function deeperInC(array $list): array
{
    return array_map('deeperInC', [$list]);
}

/** A tree of generators, each of which waits. */
function leaves(int $depth, int $microseconds): Generator
{
    if ($depth === 0) {
        usleep($microseconds);
        yield 1;

        return 1;
    }

    return yield from leaves($depth - 1, $microseconds);
}

/** Fibers within fibers, each of which waits. */
function nested(int $depth, int $microseconds): int
{
    if ($depth === 0) {
        return 0;
    }
    $fiber = new Fiber(function () use ($depth, $microseconds): int {
        usleep($microseconds);
        Fiber::suspend('half way');
        usleep($microseconds);

        return 1 + nested($depth - 1, $microseconds);
    });
    $fiber->start();
    usleep($microseconds);
    $fiber->resume();

    return $fiber->getReturn();
}

/** Waits, and sees whether what belongs to the request is still its own. */
function state(string $id, int $microseconds): string
{
    if (date_default_timezone_get() !== ZONE) {
        return 'wrong: the time zone of another: ' . date_default_timezone_get();
    }
    ini_set('precision', (string) (5 + strlen($id) % 3));
    $precision = ini_get('precision');
    date_default_timezone_set('Asia/Tokyo');
    mb_internal_encoding('ISO-8859-1');
    mb_detect_order(['SJIS', 'UTF-8']);
    mb_regex_encoding('EUC-JP');
    mb_ereg_search_init("{$id} {$id}", $id);
    mb_ereg_search();
    set_error_handler(static function (int $level, string $message) use ($id): bool {
        throw new StressError("{$id}: {$message}");
    });
    libxml_use_internal_errors(true);
    simplexml_load_string("<{$id}");
    $_GET['own'] = $id;
    header("X-Own: {$id}");
    strtok("{$id} {$id}", ' ');
    usleep($microseconds);
    $wrong = [];
    ini_get('precision') === $precision || $wrong[] = 'precision';
    date_default_timezone_get() === 'Asia/Tokyo' || $wrong[] = 'time zone';
    mb_internal_encoding() === 'ISO-8859-1' || $wrong[] = 'encoding';
    mb_detect_order() === ['SJIS', 'UTF-8'] || $wrong[] = 'order of encodings';
    mb_ereg_search_getpos() === strlen($id) && mb_ereg_search() || $wrong[] = 'search';
    $_GET['own'] === $id || $wrong[] = '$_GET';
    in_array("X-Own: {$id}", headers_list(), true) || $wrong[] = 'headers';
    strtok(' ') === $id || $wrong[] = 'strtok';
    str_contains(libxml_get_errors()[0]->message ?? '', $id) || $wrong[] = 'libxml';
    try {
        trigger_error($id);
        $wrong[] = 'error handler';
    } catch (StressError $error) {
        $error->getMessage() === "{$id}: {$id}" || $wrong[] = 'error handler of another';
    }

    return $wrong === [] ? 'state' : 'wrong: ' . implode(', ', $wrong);
}

/** Extensions' functions with callbacks that wait, and objects of many kinds. */
function library(string $id, int $microseconds): string
{
    $list = range(1, 20);
    usort($list, static function (int $a, int $b) use ($microseconds): int {
        if ($a === 10) {
            usleep($microseconds);
        }

        return $b <=> $a;
    });
    $text = preg_replace_callback('/\d+/', static function (array $match) use ($microseconds): string {
        usleep($microseconds);

        return (string) ($match[0] * 2);
    }, '1 and 2');
    $document = new DOMDocument();
    $document->loadXML("<list><item>{$id}</item></list>");
    $item = (new DOMXPath($document))->query('//item')->item(0);
    $map = new WeakMap();
    $map[$item] = $list;
    $storage = new SplObjectStorage();
    $storage[$document] = $map;
    $copy = unserialize(serialize(new ArrayObject([$id => $list])));
    $date = (new DateTimeImmutable('2024-02-29'))->modify('+1 year')->format('Y-m-d');
    $database = new PDO('sqlite::memory:');
    $database->sqliteCreateFunction('own', static fn (int $n): string => "{$id}{$n}");
    $row = $database->query('SELECT own(7)')->fetchColumn();
    $file = fopen('php://memory', 'r+');
    stream_filter_append($file, 'stress.upper', STREAM_FILTER_WRITE);
    fwrite($file, "upper {$id}");
    rewind($file);
    $good = $list[0] === 20 && $text === '2 and 4' && $item->textContent === $id && count($storage[$document]) === 1
        && $copy[$id] === $list && $date === '2025-03-01' && $row === "{$id}7"
        && stream_get_contents($file) === strtoupper("upper {$id}");

    return $good ? 'library' : 'wrong';
}

/** Cycles, which the collector finds; the object store of an isolate is shared by its requests. */
function cycles(string $id, int $microseconds): string
{
    for ($i = 0; $i < 50; $i++) {
        $first = new Counter($id);
        $first->other = new Counter($id);
        $first->other->other = $first;
    }
    usleep($microseconds);
    unset($first);
    gc_collect_cycles();

    return 'cycles';
}

/** Whether the work of a session is one request's at a time, as PHP promises. */
function session(string $id, string $name, int $microseconds): string
{
    session_id($name);
    session_start(['use_cookies' => '0', 'use_strict_mode' => '0', 'save_path' => $_SERVER['HTTP_X_FOLDER']]);
    $before = $_SESSION['count'] ?? 0;
    $_SESSION['count'] = $before + 1;
    $_SESSION['last'] = $id;
    usleep($microseconds);
    if ($_SESSION['count'] !== $before + 1 || $_SESSION['last'] !== $id) {
        return 'wrong: the session has changed';
    }
    session_write_close();

    return 'session';
}

function upload(string $id, int $microseconds): string
{
    $file = $_FILES['file'] ?? null;
    if ($file === null || $file['error'] !== UPLOAD_ERR_OK) {
        return 'wrong: no upload';
    }
    usleep($microseconds);
    $text = file_get_contents($file['tmp_name']);
    if (!is_uploaded_file($file['tmp_name']) || $text !== str_repeat($id, 1000) || $_POST['field'] !== $id) {
        return 'wrong: not the upload';
    }
    if (strlen($id) % 2 === 0) {
        $target = tempnam($_SERVER['HTTP_X_FOLDER'], 'moved');
        if (!move_uploaded_file($file['tmp_name'], $target) || !unlink($target)) {
            return 'wrong: not moved';
        }
    }

    return 'upload';
}

/** A peer that echoes; the stream wrappers, too. */
function sockets(string $id, int $microseconds): string
{
    $peer = $_SERVER['HTTP_X_PEER'];
    $socket = stream_socket_client("tcp://{$peer}", $code, $message, 60);
    fwrite($socket, "echo {$id}\n");
    usleep($microseconds);
    $answer = fgets($socket);
    fwrite($socket, "again {$id}\n");
    stream_set_timeout($socket, 60);
    $answer .= fgets($socket);
    fclose($socket);
    if ($answer !== "echo {$id}\nagain {$id}\n") {
        return "wrong: {$answer}";
    }
    $page = file_get_contents("http://{$peer}/{$id}");

    return $page === "GET /{$id} HTTP/1.1" || $page === "GET /{$id} HTTP/1.0" ? 'sockets' : "wrong: {$page}";
}

function curl(string $id): string
{
    $handle = curl_init("http://{$_SERVER['HTTP_X_PEER']}/{$id}");
    $text = '';
    curl_setopt($handle, CURLOPT_WRITEFUNCTION, static function ($handle, string $part) use (&$text): int {
        usleep(100);
        $text .= $part;

        return strlen($part);
    });
    curl_setopt($handle, CURLOPT_FORBID_REUSE, true);
    curl_exec($handle);

    return $text === "GET /{$id} HTTP/1.1" ? 'curl' : "wrong: {$text}";
}

function pipes(string $id): string
{
    $process = popen("sleep 0.02; printf %s " . escapeshellarg($id), 'r');
    $text = stream_get_contents($process);
    pclose($process);

    return $text === $id ? 'pipes' : "wrong: {$text}";
}

/** The body arrives while PHP waits for it. */
function body(string $id): string
{
    $text = file_get_contents('php://input');

    return $text === str_repeat($id, 1000) ? 'body' : 'wrong: ' . strlen($text) . ' bytes';
}

function answer(string $case, string $id, int $microseconds): string
{
    switch ($case) {
        case 'park':
            $text = str_repeat($id, 100);
            for ($turn = 0; $turn < 3; $turn++) {
                usleep($microseconds);
            }
            return $text === str_repeat($id, 100) && PHP_SAPI === 'surus' ? 'park' : 'wrong';

        case 'state':
            return state($id, $microseconds);

        case 'nested':
            return 'nested ' . nested(3, $microseconds);

        case 'generators':
            $sum = 0;
            foreach (leaves(3, $microseconds) as $leaf) {
                $sum += $leaf;
            }
            return "generators {$sum}";

        case 'abandoned_generator':
            $generator = (static function () use ($microseconds): Generator {
                try {
                    yield 1;
                    yield 2;
                } finally {
                    usleep($microseconds);
                }
            })();
            $generator->current();
            unset($generator);
            return 'abandoned_generator';

        case 'abandoned_fiber':
            $fiber = new Fiber(static function () use ($microseconds): void {
                try {
                    Fiber::suspend();
                } finally {
                    usleep($microseconds);
                }
            });
            $fiber->start();
            unset($fiber);
            return 'abandoned_fiber';

        case 'output':
            ob_start(static function (string $text) use ($microseconds): string {
                usleep($microseconds);
                return strtoupper($text);
            });
            echo "out{$id}";
            usleep($microseconds);
            ob_end_flush();
            return ' output';

        case 'open_buffers':
            ob_start(static fn (string $text): string => strrev($text));
            ob_start();
            echo 'reffub';
            return '';

        case 'library':
            return library($id, $microseconds);

        case 'cycles':
            return cycles($id, $microseconds);

        case 'session':
            return session($id, $id, $microseconds);

        case 'shared_session':
            return session($id, 'shared' . $microseconds % 3, $microseconds);

        case 'upload':
            return upload($id, $microseconds);

        case 'body':
            return body($id);

        case 'sockets':
            return sockets($id, $microseconds);

        case 'curl':
            return curl($id);

        case 'pipes':
            return pipes($id);

        case 'compute':
            for ($i = 0, $hash = $id; $i < 20_000; $i++) {
                $hash = md5($hash);
            }
            return 'compute';

        case 'destructor':
            $parks = new ParksAtTheEnd($microseconds);
            $kept = new ParksAtTheEnd($microseconds);
            unset($parks);
            return 'destructor';

        case 'shutdown':
            register_shutdown_function(static function () use ($microseconds): void {
                usleep($microseconds);
                echo ' afterwards';
            });
            return 'shutdown';

        case 'include':
            return 'include ' . (include __DIR__ . '/included.php')($id);

        case 'stream':
            for ($i = 0; $i < 40; $i++) {
                echo str_repeat($id[0], 32_768);
                if ($i % 8 === 0) {
                    flush();
                }
            }
            return '';

        case 'finish':
            echo 'finish';
            fastcgi_finish_request();
            usleep($microseconds);
            echo 'not to be seen';
            return '';

        case 'exception':
            try {
                usleep($microseconds);
                throw new StressError($id);
            } finally {
                usleep($microseconds);
            }
            // no break: never reached

        case 'exception_in_fiber':
            $fiber = new Fiber(static function () use ($id, $microseconds): void {
                usleep($microseconds);
                throw new StressError($id);
            });
            $fiber->start();
            return 'went on';

        case 'exit':
            try {
                usleep($microseconds);
                exit('exit');
            } catch (Throwable) {
                echo 'caught';
            }
            // no break: never reached

        case 'exit_in_fiber':
            $fiber = new Fiber(static function () use ($microseconds): void {
                Fiber::suspend();
                usleep($microseconds);
                exit('exit_in_fiber');
            });
            $fiber->start();
            $fiber->resume();
            return 'went on';

        case 'endless':
            $number = 0;
            try {
                while (true) {
                    $number++;
                }
            } finally {
                usleep(100);
            }
            // no break: never reached

        case 'endless_wait':
            while (true) {
                usleep($microseconds);
            }
            // no break: never reached

        case 'memory':
            $list = [];
            while (true) {
                $list[] = str_repeat($id, 5_000);
            }
            // no break: never reached

        case 'memory_at_once':
            return (string) strlen(str_repeat('x', 4_000_000_000));

        case 'recursion':
            return (string) deeper(0);

        case 'c_recursion':
            return (string) count(deeperInC([1]));

        case 'redeclared':
            eval('class Counter {}');
            return 'declared twice';

        case 'fatal_while_buffering':
            ob_start(static fn (string $text): string => $text);
            echo 'buffered';
            eval('class Counter {}');
            return 'declared twice';

        case 'fatal_in_fiber':
            $fiber = new Fiber(static function () use ($microseconds): void {
                usleep($microseconds);
                eval('class Counter {}');
            });
            $fiber->start();
            return 'went on';

        case 'tasks':
            $inner = static fn (): int => array_sum(Surus\all([
                static fn (): int => [usleep($microseconds), 1][1],
                static fn (): int => Surus\timeout(60, static fn (): int => [usleep($microseconds), 2][1]),
            ], 1 + $microseconds % 2));
            $fiber = static function () use ($inner): int {
                $fiber = new Fiber($inner);
                $fiber->start();
                return $fiber->getReturn();
            };
            return 'tasks ' . max(Surus\all([$inner, $fiber, $inner]));

        case 'cancelled_tasks':
            $wait = static function () use ($microseconds, $id): void {
                $holder = new ParksAtTheEnd(100);
                try {
                    usleep(1000 * $microseconds + 1_000_000);
                } finally {
                    gc_collect_cycles();
                    usleep(100);
                }
            };
            Surus\race([$wait, static fn () => usleep($microseconds), static fn () => Surus\all([$wait, $wait])]);
            try {
                Surus\timeout($microseconds / 1e6, static fn () => Surus\all([$wait, $wait]));
            } catch (Surus\TimeoutException) {
            }
            return 'cancelled_tasks';

        case 'tasks_left':
            $list = new Counter($id);
            foreach ([0, $microseconds, 60_000_000] as $time) {
                Surus\async(static function () use ($time, $list): array {
                    $fiber = new Fiber(static fn () => Fiber::suspend(usleep($time)));
                    $fiber->start();
                    return [$fiber, $list];
                });
            }
            usleep($microseconds);
            return 'tasks_left';

        case 'exception_in_task':
            Surus\all([
                static fn () => usleep(60_000_000),
                static fn () => [usleep($microseconds), throw new StressError($id)],
            ]);
            return 'went on';

        case 'exit_in_task':
            Surus\async(static function () use ($microseconds): never {
                usleep($microseconds);
                echo 'exit_in_task';
                exit;
            });
            Surus\all([static fn () => usleep(60_000_000), static fn () => usleep(50_000_000)]);
            return 'went on';

        case 'endless_task':
            Surus\all([
                static function (): void {
                    while (true) {
                        usleep(1);
                    }
                },
                static function (): void {
                    for ($i = 0;; $i++) {
                    }
                },
            ]);
            return 'went on';

        case 'fatal_in_task':
            Surus\async(static function () use ($microseconds): void {
                usleep($microseconds);
                eval('class Counter {}');
            });
            Surus\all([static fn () => usleep(60_000_000), static fn () => usleep(50_000_000)]);
            return 'went on';

        case 'memory_in_task':
            Surus\all([static fn () => usleep(60_000_000), static function () use ($id): void {
                $list = [];
                while (true) {
                    $list[] = str_repeat($id, 5_000);
                }
            }]);
            return 'went on';

        case 'fatal_in_shutdown':
            register_shutdown_function(static function (): void {
                eval('class Counter {}');
            });
            return 'fatal_in_shutdown';

        case 'fatal_while_flushing':
            header_register_callback(static function (): void {
                eval('class Counter {}');
            });
            register_shutdown_function(static function (): void {
                echo 'afterwards';
                flush();
            });
            flush();
            return 'went on';
    }

    return "wrong: no case {$case}";
}
