<?php

declare(strict_types=1);

// In place of Composer's: the packages of Debian, and this application's classes.
foreach (
    [
        'Symfony/Component/Runtime', 'Symfony/Component/Dotenv', 'Symfony/Component/Yaml', 'Symfony/Component/Form',
        'Symfony/Component/Security/Csrf', 'Symfony/Component/Validator', 'Symfony/Bundle/FrameworkBundle',
        'Symfony/Bundle/SecurityBundle', 'Symfony/Bundle/TwigBundle', 'Symfony/Bridge/Twig', 'Doctrine/ORM',
    ] as $package
) {
    require_once "/usr/share/php/$package/autoload.php";
}

spl_autoload_register(static function (string $class): void {
    $file = dirname(__DIR__) . '/src/' . strtr(substr($class, strlen('App\\')), '\\', '/') . '.php';
    if (str_starts_with($class, 'App\\') && is_file($file)) {
        require $file;
    }
});
