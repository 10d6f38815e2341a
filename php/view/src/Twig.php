<?php

declare(strict_types=1);

namespace Surus\View;

use Surus\Http\Response;
use Twig\Environment;

/** Twig's templates (twig/twig 3) as pages and streams: `{% flush %}` sends the part before it at once. */
final class Twig
{
    /** Adds the tag `flush` to the environment. */
    public function __construct(public readonly Environment $environment)
    {
        $environment->addExtension(new TwigFlush());
    }

    /** @param array<string, mixed> $variables */
    public function render(string $name, array $variables = []): string
    {
        return $this->environment->render($name, $variables);
    }

    /**
     * @param array<string, mixed> $variables
     *
     * @return \Generator<int, string>
     */
    public function stream(string $name, array $variables = []): \Generator
    {
        $template = $this->environment->load($name);

        return Pieces::of(static fn () => $template->display($variables));
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
}
