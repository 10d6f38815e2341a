<?php

declare(strict_types=1);

namespace Surus\Schema;

/** Messages of violations in languages other than English; added while the application boots. */
final class Messages
{
    /** @var array<string, array<string, string>> */
    private static array $all = [];

    /**
     * Adds messages by rule ("required", "minLength", "format.email"); placeholders like `{min}` are filled in. The
     * client's Accept-Language selects the language.
     *
     * @param array<string, string> $messages
     */
    public static function add(string $language, array $messages): void
    {
        self::$all[$language] = $messages + (self::$all[$language] ?? []);
    }

    /** @internal for the server, once at boot */
    public static function json(): string
    {
        return json_encode((object) self::$all, JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE);
    }
}
