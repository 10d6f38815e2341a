<?php

declare(strict_types=1);

if (!function_exists('included')) {
    function included(string $id): string
    {
        static $calls = 0;
        $calls++;

        return $calls > 0 ? 'once' : 'never';
    }
}

return fn (string $id): string => included($id) . (new class ($id) {
    public function __construct(public readonly string $id)
    {
    }

    public function __toString(): string
    {
        return ' more';
    }
});
