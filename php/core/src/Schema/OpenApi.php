<?php

declare(strict_types=1);

namespace Surus\Schema;

use Surus\App;
use Surus\Http\Response;

/**
 * The OpenAPI 3.1 document of an application, and the page that shows it.
 *
 * It is made from patterns, signatures, input classes, return types and doc comments.
 */
final class OpenApi
{
    private const POLICY = "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline';"
        . " style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

    /** @var \WeakMap<App, self>|null */
    private static ?\WeakMap $of = null;

    private ?string $json = null;

    /** @param list<string> $servers */
    private function __construct(
        private readonly App $app,
        private readonly string $title,
        private readonly string $version,
        private readonly ?string $description = null,
        private readonly array $servers = [],
    ) {
    }

    /**
     * Adds two routes to an application: its document and the page.
     *
     * @param string $document path of the document
     * @param string|null $page path of the page; null: none
     * @param list<string> $servers base URLs of the application
     */
    public static function serve(
        App $app,
        string $title = 'API',
        string $version = '1.0',
        ?string $description = null,
        string $document = '/openapi.json',
        ?string $page = '/docs',
        array $servers = [],
    ): void {
        self::$of ??= new \WeakMap();
        $openApi = self::$of[$app] = new self($app, $title, $version, $description, $servers);
        $json = #[Operation(hidden: true)] static fn (): Response => new Response(
            $openApi->json(),
            headers: ['content-type' => 'application/json'],
        );
        $app->get($document, $json);
        if ($page === null) {
            return;
        }
        $up = str_repeat('../', substr_count(trim($page, '/'), '/'));
        $url = htmlspecialchars(($up === '' ? './' : $up) . ltrim($document, '/'));
        $html = str_replace('@DOCUMENT@', $url, page());
        $show = #[Operation(hidden: true)] static fn (): Response => new Response($html, headers: [
            'content-type' => 'text/html; charset=UTF-8',
            'content-security-policy' => self::POLICY,
        ]);
        $app->get($page, $show);
    }

    /** The document of an application as JSON. */
    public static function of(App $app): string
    {
        return (self::$of[$app] ?? new self($app, 'API', '1.0'))->json();
    }

    private function json(): string
    {
        return $this->json ??= document(json_encode(
            array_filter([
                'info' => array_filter([
                    'title' => $this->title,
                    'version' => $this->version,
                    'description' => $this->description,
                ], static fn (mixed $value) => $value !== null),
                'servers' => array_map(static fn (string $url) => ['url' => $url], $this->servers),
            ]) + (new RouteDescriber($this->app->parts()[0]))->describe($this->app->routes()),
            JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE,
        ));
    }
}
