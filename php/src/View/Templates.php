<?php

declare(strict_types=1);

namespace Surus\View;

/**
 * Templates in plain PHP. A template has its variables, and `$e(text)`, which makes text safe in HTML; `$layout(name)`
 * puts what it prints into another template as `$content`; `$include(name, variables)` prints another one.
 */
final class Templates
{
    /** @param array<string, mixed> $shared variables of every template */
    public function __construct(private readonly string $folder, private readonly array $shared = [])
    {
    }

    /**
     * @param string $name below the folder, without ".php"
     * @param array<string, mixed> $variables
     *
     * @throws \InvalidArgumentException if there is no such template
     */
    public function render(string $name, array $variables = []): string
    {
        $outer = null;
        $content = $this->run($name, $variables, $outer);
        while ($outer !== null) {
            [$name, $outer] = [$outer, null];
            $content = $this->run($name, ['content' => $content] + $variables, $outer);
        }

        return $content;
    }

    /** @param array<string, mixed> $variables */
    private function run(string $name, array $variables, ?string &$outer): string
    {
        if (preg_match('~^[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*$~D', $name) !== 1 || !is_file("$this->folder/$name.php")) {
            throw new \InvalidArgumentException("There is no template \"$name\" in $this->folder");
        }
        $variables += $this->shared + [
            'e' => static fn (mixed $text): string => htmlspecialchars((string) $text, ENT_QUOTES | ENT_SUBSTITUTE),
            'layout' => static function (string $name) use (&$outer): void {
                $outer = $name;
            },
            'include' => fn (string $name, array $more = []): int => print($this->render($name, $more + $variables)),
        ];
        $level = ob_get_level();
        ob_start();
        try {
            (static function (): void {
                extract(func_get_arg(1), EXTR_SKIP);
                require func_get_arg(0);
            })("$this->folder/$name.php", $variables);

            return (string) ob_get_clean();
        } finally {
            while (ob_get_level() > $level) {
                ob_end_clean();
            }
        }
    }
}
