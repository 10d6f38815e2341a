<?php

/**
 * The isolate beside each of PHP's own tests: sets all that PHP code can set, over and over, and looks whether it is
 * still so when its turn comes again. Runs with whatever settings the test asks for, so every function may be missing.
 * What it prints goes nowhere; it ends only to say that something came through from the test.
 */

/** A value for each round that differs from the last one's. */
function pick(int $round, mixed ...$values): mixed
{
    return $values[$round % count($values)];
}

/** @return array<string, array{Closure(int): mixed, Closure(): mixed}> state by name: how to set it, how to read it */
function rows(): array
{
    $setting = fn (string $name, string ...$values) => [
        function (int $n) use ($name, $values) {
            ini_set($name, pick($n, ...$values));
            return ini_get($name);
        },
        fn () => ini_get($name),
    ];
    $function = fn (callable $set, callable $get) => [
        function (int $n) use ($set, $get) {
            $set($n);
            return $get();
        },
        $get,
    ];
    $rows = [
        'precision' => $setting('precision', '3', '9'),
        'include_path' => $setting('include_path', '.:/neighbour', '/'),
        'user_agent' => $setting('user_agent', 'neighbour', 'other'),
        'arg_separator.output' => $setting('arg_separator.output', ';', '&'),
        'default_charset' => $setting('default_charset', 'ISO-8859-1', 'UTF-8'),
        'error_reporting' => $function(
            fn (int $n) => error_reporting(pick($n, E_ALL, E_ERROR)),
            fn () => error_reporting(),
        ),
        'directory' => $function(fn (int $n) => chdir(pick($n, '/', '/usr')), fn () => getcwd()),
        'umask' => $function(
            fn (int $n) => umask(pick($n, 0o27, 0o77)),
            function () {
                umask($mask = umask(0));
                return $mask;
            },
        ),
        'locale' => $function(
            fn (int $n) => setlocale(LC_ALL, pick($n, 'C.UTF-8', 'C')),
            fn () => setlocale(LC_ALL, '0'),
        ),
        'environment' => $function(
            fn (int $n) => putenv("NEIGHBOUR={$n}"),
            fn () => getenv('NEIGHBOUR'),
        ),
        'time_zone' => $function(
            fn (int $n) => date_default_timezone_set(pick($n, 'Asia/Tokyo', 'Africa/Tunis')),
            fn () => [date_default_timezone_get(), date('e', 0)],
        ),
        'global' => $function(fn (int $n) => $GLOBALS['neighbour'] = $n, fn () => $GLOBALS['neighbour']),
        'superglobal' => $function(
            function (int $n) {
                $_GET = ['n' => $n];
                $_SERVER['NEIGHBOUR'] = $n;
            },
            fn () => [$_GET, $_SERVER['NEIGHBOUR'] ?? null],
        ),
        'error_handler' => $function(
            fn (int $n) => set_error_handler(function () use ($n) {
                $GLOBALS['handled'] = $n;
                return true;
            }),
            function () {
                trigger_error('handled');
                return $GLOBALS['handled'];
            },
        ),
        'exception_handler' => $function(
            fn (int $n) => set_exception_handler(pick($n, 'pick', 'rows')),
            function () {
                set_exception_handler($handler = set_exception_handler(null));
                return $handler;
            },
        ),
        'autoload' => $function(
            function (int $n) {
                array_map('spl_autoload_unregister', spl_autoload_functions());
                spl_autoload_register(fn (string $class) => $GLOBALS['loaded'] = "{$class} {$n}");
            },
            function () {
                class_exists('Neighbour\Missing');
                return [$GLOBALS['loaded'], count(spl_autoload_functions())];
            },
        ),
        'tokens' => [
            function (int $n) {
                strtok("first second{$n} third", ' ');
                return true;
            },
            fn () => str_starts_with((string) strtok(' '), 'second'),
        ],
        'random' => [
            function (int $n) {
                mt_srand($n);
                $next = mt_rand();
                mt_srand($n);
                return $next;
            },
            fn () => mt_rand(),
        ],
        'stream_wrapper' => $function(
            fn (int $n) => pick(
                $n,
                fn () => stream_wrapper_register('neighbour', 'ArrayObject'),
                fn () => stream_wrapper_unregister('neighbour'),
            )(),
            fn () => in_array('neighbour', stream_get_wrappers(), true),
        ),
        'json_error' => $function(fn (int $n) => json_decode(pick($n, '{', '1')), fn () => json_last_error()),
        'pattern_error' => $function(
            fn (int $n) => preg_match('/./u', pick($n, "\xff", 'a')),
            fn () => preg_last_error(),
        ),
        'error_get_last' => $function(
            function (int $n) {
                set_error_handler(null);
                @trigger_error("last {$n}");
                restore_error_handler();
            },
            fn () => error_get_last()['message'] ?? null,
        ),
        'collector' => $function(fn (int $n) => pick($n, 'gc_disable', 'gc_enable')(), fn () => gc_enabled()),
        'status' => $function(fn (int $n) => http_response_code(pick($n, 404, 201)), fn () => http_response_code()),
        'ignore_user_abort' => $function(
            fn (int $n) => ignore_user_abort((bool) ($n % 2)),
            fn () => ignore_user_abort(),
        ),
        'encoding' => $function(
            fn (int $n) => mb_internal_encoding(pick($n, 'SJIS', 'UTF-8')),
            fn () => mb_internal_encoding(),
        ),
        'substitute_character' => $function(
            fn (int $n) => mb_substitute_character(pick($n, 0x41, 0x42)),
            fn () => mb_substitute_character(),
        ),
        'xml_errors' => $function(
            fn (int $n) => libxml_use_internal_errors((bool) ($n % 2)),
            fn () => libxml_use_internal_errors(),
        ),
        'session' => $function(fn (int $n) => session_name("neighbour{$n}"), fn () => session_name()),
        'socket_error' => $function(fn (int $n) => socket_clear_error(), fn () => socket_last_error()),
    ];
    $needs = [
        'chdir', 'umask', 'setlocale', 'putenv', 'date', 'strtok', 'mt_srand', 'stream_get_wrappers', 'ini_set',
        'spl_autoload_register', 'error_get_last', 'trigger_error',
    ];
    if (array_filter($needs, fn (string $name) => !function_exists($name))) {
        return [];
    }
    $extensions = [
        'encoding' => 'mbstring', 'substitute_character' => 'mbstring', 'session' => 'session', 'json_error' => 'json',
        'socket_error' => 'sockets', 'xml_errors' => 'libxml',
    ];
    return array_filter(
        $rows,
        fn (string $name) => !isset($extensions[$name]) || extension_loaded($extensions[$name]),
        ARRAY_FILTER_USE_KEY,
    );
}

/** Compiles, declares, throws, buffers, makes garbage, calls back, switches fibers. */
function work(int $n): void
{
    if ($n < 40) {
        define("NEIGHBOUR_{$n}", $n);
        eval("function neighbour_{$n}() { static \$calls = 0; return ++\$calls; }
            class Neighbour_{$n} { public static \$own = {$n}; public \$self; }");
    }
    $class = 'Neighbour_' . min($n, 39);
    for ($i = 0; $i < 20; $i++) {
        $object = new $class();
        $object->self = $object;
    }
    if ($n % 8 === 0) {
        gc_collect_cycles();
    }
    ob_start(fn (string $text) => strrev($text));
    echo 'neighbour';
    ob_start();
    try {
        throw new LogicException((string) $n);
    } catch (LogicException $exception) {
        $exception->getTraceAsString();
    } finally {
        ob_end_clean();
        ob_end_clean();
    }
    $numbers = range(1, 8);
    usort($numbers, fn (int $a, int $b) => $b <=> $a);
    preg_replace_callback('/\d/', fn (array $match) => "<{$match[0]}>", "a1b2{$n}");
    serialize([$n, 1.5, $object]);
    $fiber = new Fiber(fn () => Fiber::suspend($n));
    $fiber->start();
    $fiber->resume();
    if ($n % 16 === 0) {
        usleep(50);
    }
}

(function () {
    set_time_limit(0);
    set_error_handler(fn () => true);
    $rows = rows();
    for ($n = 0; ; $n++) {
        work($n);
        $expected = [];
        foreach ($rows as $name => [$set]) {
            $expected[$name] = $set($n);
        }
        foreach ($rows as $name => [1 => $get]) {
            $found = $get();
            if ($found !== $expected[$name]) {
                $values = json_encode([$expected[$name], $found], JSON_PARTIAL_OUTPUT_ON_ERROR);
                error_log("neighbour: {$name} was set and found as {$values}", 4);
                exit;
            }
        }
    }
})();
