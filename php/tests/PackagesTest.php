<?php

declare(strict_types=1);

namespace Surus\Tests;

use PHPUnit\Framework\TestCase;

/** The packages for Composer have what the server has, and name what they use. */
final class PackagesTest extends TestCase
{
    private const FOLDER = __DIR__ . '/..';

    /** @return iterable<string, array{string}> */
    public static function packages(): iterable
    {
        foreach (glob(self::FOLDER . '/*/composer.json') ?: [] as $file) {
            yield basename(dirname($file)) => [basename(dirname($file))];
        }
    }

    /** @dataProvider packages */
    public function testTheServerHasEachClass(string $package): void
    {
        $count = 0;
        foreach (self::classes($package) as $class => $file) {
            $count++;
            $source = (string) file_get_contents($file);
            self::assertMatchesRegularExpression('/^namespace ' . preg_quote(self::before($class), '/') . ';$/m', $source, $file);
            if (!preg_match('/ (extends|implements) [^{]*(Twig|Psr)\b|^use (Twig|Psr\\\\Http|Symfony|Illuminate)\\\\/m', $source)) {
                self::assertTrue(class_exists($class) || interface_exists($class) || trait_exists($class), "$class of $file");
            }
        }
        self::assertGreaterThan(0, $count);
    }

    /** @dataProvider packages */
    public function testPackagesRequireWhatTheyUse(string $package): void
    {
        $owners = [];
        foreach (self::packages() as [$other]) {
            $owners += array_fill_keys(array_keys(self::classes($other)), $other);
        }
        $manifest = self::manifest($package);
        self::assertArrayHasKey('php', $manifest['require']);
        foreach (self::classes($package) as $file) {
            $source = php_strip_whitespace($file);
            preg_match_all('/(?:\buse |[^\w\\\\]\\\\)(Surus(?:\\\\[A-Z]\w*)+)/', $source, $uses);
            foreach ($uses[1] as $class) {
                // The name of a namespace is that of its first class.
                $named = array_filter(array_keys($owners), static fn (string $each): bool => $each === $class || str_starts_with($each, "$class\\"));
                if ($named === [] && str_starts_with($class, 'Surus\Internal\\')) {
                    continue; // the server's own
                }
                $owner = $owners[reset($named)] ?? self::fail("$file uses $class, which no package has");
                self::assertTrue($owner === $package || isset($manifest['require']["surus/$owner"]), "$file uses $class of surus/$owner");
            }
        }
    }

    public function testTheWholeHasAllOfThem(): void
    {
        $whole = json_decode((string) file_get_contents(self::FOLDER . '/composer.json'), true, flags: JSON_THROW_ON_ERROR);
        $replaced = $folders = $required = [];
        foreach (self::packages() as [$package]) {
            $manifest = self::manifest($package);
            $replaced["surus/$package"] = 'self.version';
            $required += $manifest['require'];
            foreach ($manifest['autoload']['psr-4'] as $namespace => $folder) {
                $folders[$namespace] = "$package/$folder";
            }
        }
        self::assertEquals($replaced, $whole['replace']);
        self::assertEquals($folders, $whole['autoload']['psr-4']);
        self::assertEquals(array_diff_key($required, $replaced), array_intersect_key($whole['require'], $required));
    }

    /** @return array{require: array<string, string>, autoload: array{psr-4: array<string, string>}} */
    private static function manifest(string $package): array
    {
        return json_decode((string) file_get_contents(self::FOLDER . "/$package/composer.json"), true, flags: JSON_THROW_ON_ERROR);
    }

    /** @return array<string, string> files by their classes, as Composer finds them */
    private static function classes(string $package): array
    {
        $classes = [];
        foreach (self::manifest($package)['autoload']['psr-4'] as $namespace => $folder) {
            $root = self::FOLDER . "/$package/$folder";
            $files = new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($root, \FilesystemIterator::SKIP_DOTS));
            foreach ($files as $file) {
                $name = substr($file->getPathname(), strlen($root), -strlen('.php'));
                $classes[$namespace . strtr($name, '/', '\\')] = $file->getPathname();
            }
        }

        return $classes;
    }

    private static function before(string $class): string
    {
        return substr($class, 0, (int) strrpos($class, '\\'));
    }
}
