<?php

declare(strict_types=1);

use App\Database;
use App\Notes;
use Surus\App;
use Surus\Config\Env;
use Surus\Http\HttpException;
use Surus\Http\Request;
use Surus\Http\Response;
use Surus\Middleware\Csrf;
use Surus\Middleware\SecurityHeaders;
use Surus\Security\Vault;
use Surus\View\Templates;

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'App\\')) {
        require __DIR__ . '/src/' . strtr(substr($class, 4), '\\', '/') . '.php';
    }
});

$env = Env::load(__DIR__ . '/.env');
$views = new Templates(__DIR__ . '/views');

$app = new App();
$app->use(new SecurityHeaders());

// Made here, so that a database that cannot be used is an error at boot.
$notes = new Notes(new Database($env->string('APP_DATABASE', __DIR__ . '/data/notes.sqlite')));
$app->singleton(Notes::class, fn (): Notes => $notes);

$app->group('/', function (App $pages) use ($env, $views): void {
    $pages->get('/', fn (Request $request, Notes $notes): string => $views->render('home', [
        'title' => $env->string('APP_NAME'), 'notes' => $notes->latest(), 'field' => Csrf::field($request),
    ]));
    $pages->post('/', function (Request $request, Notes $notes): Response {
        $text = trim((string) $request->form('text', ''));
        if ($text !== '') {
            $notes->add($text);
        }

        return Response::redirect('/');
    });
})->use(new Csrf(new Vault($env->string('APP_SECRET'))));

$app->group('/api', function (App $api): void {
    $api->get('/notes', fn (Notes $notes): array => $notes->latest());
    $api->get('/notes/{id:int}', fn (int $id, Notes $notes): array => ['text' => $notes->find($id) ?? throw new HttpException(404)]);
});

return $app;
