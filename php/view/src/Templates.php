<?php

declare(strict_types=1);

namespace Surus\View;

use Surus\Http\Response;

/**
 * Templates in plain PHP. A template has its variables, and `$e(text)`, which escapes text for HTML; `$layout(name,
 * variables)` inserts its output into another template as `$content`; `$include(name, variables)` prints another one;
 * `$flush()` sends the output so far, if the page is streamed.
 */
final class Templates
{
    /** @param array<string, mixed> $shared variables of every template */
    public function __construct(private readonly string $folder, private readonly array $shared = [])
    {
    }

    /**
     * @param string $name path below the folder, without ".php"
     * @param array<string, mixed> $variables
     *
     * @throws \InvalidArgumentException if there is no such template
     */
    public function render(string $name, array $variables = []): string
    {
        $level = ob_get_level();
        ob_start();
        try {
            $this->print($name, $variables);

            return (string) ob_get_clean();
        } finally {
            while (ob_get_level() > $level) {
                ob_end_clean();
            }
        }
    }

    /**
     * The page in pieces: the part before a `$flush()` is available while the rest is still being made, and so is the
     * beginning of a layout, if the template calls `$layout()` first.
     *
     * @param array<string, mixed> $variables
     *
     * @return \Generator<int, string>
     */
    public function stream(string $name, array $variables = []): \Generator
    {
        return Pieces::of(fn () => $this->print($name, $variables));
    }

    /**
     * A page that is sent piece by piece. An error before its first piece is handled like any other error.
     *
     * @param array<string, mixed> $variables
     */
    public function response(string $name, array $variables = [], int $status = 200): Response
    {
        return Pieces::response($this->stream($name, $variables), $status);
    }

    /**
     * The template is suspended where it calls `$layout()`, and continues where the layout prints it.
     *
     * @param array<string, mixed> $variables
     */
    private function print(string $name, array $variables): void
    {
        $outer = null;
        $own = [];
        $template = new \Fiber(function () use ($name, $variables, &$outer, &$own): void {
            $this->run($name, $variables, static function (string $layout, array $more = []) use (&$outer, &$own): void {
                if ($outer !== null) {
                    throw new \LogicException("A template has one layout, not \"$outer\" and \"$layout\"");
                }
                $outer = $layout;
                $own = $more;
                \Fiber::suspend();
            });
        });
        Pieces::advance($template, static function () use (&$outer): bool {
            return $outer !== null;
        });
        if ($outer === null) {
            return;
        }
        $content = new Content(static function () use ($template): void {
            if (!$template->isTerminated()) {
                Pieces::advance($template, static fn (): bool => false);
            }
        });
        $this->print($outer, ['content' => $content] + $own + $variables);
    }

    /**
     * @param array<string, mixed> $variables
     * @param \Closure(string, array<string, mixed>=): void $layout
     */
    private function run(string $name, array $variables, \Closure $layout): void
    {
        if (preg_match('~^[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*$~D', $name) !== 1 || !is_file("$this->folder/$name.php")) {
            throw new \InvalidArgumentException("There is no template \"$name\" in $this->folder");
        }
        $variables += $this->shared + [
            'e' => static fn (mixed $text): string => htmlspecialchars((string) $text, ENT_QUOTES | ENT_SUBSTITUTE),
            'layout' => $layout,
            'include' => fn (string $name, array $more = []) => $this->print($name, $more + $variables),
            'flush' => Pieces::flush(...),
        ];
        (static function (): void {
            extract(func_get_arg(1), EXTR_SKIP);
            require func_get_arg(0);
        })("$this->folder/$name.php", $variables);
    }
}
