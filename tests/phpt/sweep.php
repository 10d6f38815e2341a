<?php

/**
 * Calls functions of PHP and of its extensions with simple arguments, for what they leave behind in the libraries:
 * `sweep.php FROM COUNT`. Runs in a folder that is its own. What waits, ends the process or reaches for others is left out.
 */

declare(strict_types=1);

const LEFT_OUT = '/^(pcntl_|posix_(kill|set|mkfifo)|exec$|shell_exec|system$|passthru|proc_|popen|u?sleep|time_|readline'
    . '|sem_acquire|msg_receive|dl$|set_time_limit|ch(root|mod|own|grp)|lch|link$|unlink|rename|rmdir|mail$|mb_send_mail'
    . '|ftp_|socket_(accept|recv|read|select)|stream_(select|socket_)|p?fsockopen|register_|header_register|curl_multi_select'
    . '|(set|restore)_(error|exception)|ignore_user|ini_restore|php(info|credits)|error_log|syslog|sapi_|cli_set|opcache_'
    . '|fastcgi|surus|(ssh2|stomp)_connect|(gearman|memcache|amqp|yac|gnupg|rrd)_)/';

/** A value of the parameter's type, another one at each try. */
function value(ReflectionParameter $parameter, int $try): mixed
{
    $type = (string) $parameter->getType();
    foreach (
        [
            'callable' => [fn () => 0],
            'Closure' => [fn () => 0],
            'string' => ['a', 'UTF-8', '/etc/hostname', 'C', '1'],
            'int' => [1, 0, 2, 3, -1],
            'float' => [1.5, 0.0],
            'bool' => [true, false],
            'array' => [['a' => 1], [1, 2], ['b'], [], ['x' => 'y']],
            'mixed' => ['a', 1, [1], 'b', 2.5],
        ] as $name => $values
    ) {
        if (str_contains($type === '' ? 'mixed' : $type, $name)) {
            return $values[$try % count($values)];
        }
    }
    foreach (explode('|', ltrim($type, '?')) as $class) {
        try {
            return new $class();
        } catch (Throwable) {
        }
    }

    return null;
}

$names = array_filter(
    get_defined_functions()['internal'],
    fn (string $name): bool => preg_match(LEFT_OUT, $name) === 0,
);
set_error_handler(fn (): bool => true);
foreach (array_slice($names, (int) $argv[1], (int) $argv[2]) as $name) {
    $function = new ReflectionFunction($name);
    for ($try = 0; $try < 5; $try++) {
        foreach ([$function->getNumberOfRequiredParameters(), $function->getNumberOfParameters()] as $count) {
            $parameters = array_slice($function->getParameters(), 0, $count);
            $arguments = array_map(fn (ReflectionParameter $one): mixed => value($one, $try), $parameters);
            ob_start(fn (): string => '');
            try {
                $name(...$arguments);
            } catch (Throwable) {
            }
            while (ob_get_level() > 0) {
                ob_end_clean();
            }
        }
    }
}
