<?php

declare(strict_types=1);

// In place of Composer's: the packages of Debian, and this application's classes.
require_once '/usr/share/php/Illuminate/autoload.php';

spl_autoload_register(static function (string $class): void {
    $file = dirname(__DIR__) . '/app/' . strtr(substr($class, strlen('App\\')), '\\', '/') . '.php';
    if (str_starts_with($class, 'App\\') && is_file($file)) {
        require $file;
    }
});
