<?php

// Run by two isolates at once when a worker starts: each makes PHP's state its own, waits, and looks again. Prints what
// is not its own any more, or "isolated".

declare(strict_types=1);

$id = $_GET['id'];
$seed = 1000 + (int) $id;

define('SURUS_SELF_TEST', $id);
eval("function surus_self_test() { static \$n = 0; return '{$id}' . ++\$n; } class SurusSelfTest { public static \$id; public ?self \$self = null; }");
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
$cycle = new SurusSelfTest();
$cycle->self = $cycle;
unset($cycle);
$list = [3, 1, 2];
usort($list, function (int $a, int $b): int {
    usleep(100);
    return $a <=> $b;
});
// A class that is disabled nobody can use. All functions are there.
$has_fibers = method_exists(Fiber::class, 'start');
if ($has_fibers) {
    $fiber = new Fiber(function () use ($id): string {
        usleep(100);
        return Fiber::suspend($id) . $id;
    });
    $suspended = $fiber->start();
}

usleep(500);

if ($has_fibers) {
    $fiber->resume("again{$id}");
}
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
    'fiber' => !$has_fibers || $suspended === $id && $fiber->getReturn() === "again{$id}{$id}",
    'cycle collection' => gc_collect_cycles() >= 1,
];
ob_end_clean();
$shared = array_keys(array_filter($found, fn (bool $own): bool => !$own));
echo $shared === [] ? 'isolated' : implode(', ', $shared);
