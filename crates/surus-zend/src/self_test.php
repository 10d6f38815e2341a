<?php

// Run by two isolates at once when a worker starts: each makes PHP's state its own, waits, and looks again. Prints what
// is not its own any more, or "isolated".

declare(strict_types=1);

// What is disabled by the site's settings is not tested: nobody can use it.
$uses = [
    'ini setting' => ['ini_set', 'ini_get'],
    'time zone' => ['date_default_timezone_set', 'date_default_timezone_get'],
    'environment' => ['putenv', 'getenv'],
    'umask' => ['umask'],
    'working directory' => ['chdir', 'getcwd'],
    'autoloader' => ['spl_autoload_register', 'class_exists'],
    'header' => ['header', 'headers_list'],
    'random numbers' => ['mt_srand', 'mt_rand'],
    'strtok' => ['strtok'],
    'output buffer' => ['ob_start', 'ob_get_contents', 'ob_end_clean', 'strrev'],
    'sort with a callback' => ['usort'],
    'cycle collection' => ['gc_collect_cycles'],
    'waiting' => ['usleep'],
    'error handler' => ['set_error_handler'],
];
$untested = [];
foreach ($uses as $row => $functions) {
    foreach ($functions as $function) {
        if (!function_exists($function)) {
            eval("function {$function}(mixed ...\$ignored): mixed { return null; }");
            $untested[$row] = true;
        }
    }
}

$id = $_GET['id'];
$seed = 1000 + (int) $id;

define('SURUS_SELF_TEST', $id);
eval("function surus_self_test() { static \$n = 0; return '{$id}' . ++\$n; } class SurusSelfTest { public static \$id; }");
SurusSelfTest::$id = $id;
surus_self_test();
ini_set('precision', (string) (5 + (int) $id));
$zone = ['Europe/Rome', 'Africa/Tunis'][(int) $id];
date_default_timezone_set($zone);
putenv("SURUS_SELF_TEST={$id}");
umask(0o22 + (int) $id);
$directory = ['/', '/usr'][(int) $id];
chdir($directory);
$asked = [];
spl_autoload_register(function (string $class) use (&$asked): void {
    $asked[] = $class;
});
set_error_handler(fn (): bool => true);
header("X-Self-Test: {$id}");
mt_srand($seed);
$first = mt_rand();
mt_srand($seed);
strtok("a{$id} b{$id}", ' ');
ob_start(fn (string $text): string => strrev($text));
echo "buffer{$id}";
$cycle = new ArrayObject();
$cycle['self'] = $cycle;
unset($cycle);
$list = [3, 1, 2];
usort($list, function (int $a, int $b): int {
    usleep(100);
    return $a <=> $b;
});
$fiber = new Fiber(function () use ($id): string {
    usleep(100);
    return Fiber::suspend($id) . $id;
});
$suspended = $fiber->start();

usleep(500);

$fiber->resume("again{$id}");
class_exists("Missing{$id}");
$found = [
    'argument' => $_GET['id'] === $id,
    'constant' => SURUS_SELF_TEST === $id,
    'function static' => surus_self_test() === "{$id}2",
    'class static' => SurusSelfTest::$id === $id,
    'ini setting' => ini_get('precision') === (string) (5 + (int) $id),
    'time zone' => date_default_timezone_get() === $zone,
    'environment' => getenv('SURUS_SELF_TEST') === $id,
    'umask' => umask() === 0o22 + (int) $id,
    'working directory' => getcwd() === $directory,
    'autoloader' => $asked === ["Missing{$id}"],
    'header' => in_array("X-Self-Test: {$id}", headers_list(), true),
    'random numbers' => mt_rand() === $first,
    'strtok' => strtok(' ') === "b{$id}",
    'output buffer' => ob_get_contents() === "buffer{$id}",
    'sort with a callback' => $list === [1, 2, 3],
    'fiber' => $suspended === $id && $fiber->getReturn() === "again{$id}{$id}",
    'cycle collection' => gc_collect_cycles() >= 1,
];
ob_end_clean();
$found = array_diff_key($found, $untested);
$shared = array_keys(array_filter($found, fn (bool $own): bool => !$own));
echo $shared === [] ? 'isolated' : implode(', ', $shared);
