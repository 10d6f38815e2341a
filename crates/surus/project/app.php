<?php

declare(strict_types=1);

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
$app->singleton(Notes::class, fn (): Notes => new Notes(sys_get_temp_dir() . '/' . $env->string('APP_NAME') . '.json'));

$app->group('/', function (App $pages) use ($env, $views): void {
    $pages->get('/', fn (Request $request, Notes $notes): string => $views->render('home', [
        'title' => $env->string('APP_NAME'), 'notes' => $notes->all(), 'field' => Csrf::field($request),
    ]));
    $pages->post('/', function (Request $request, Notes $notes): Response {
        $notes->add(trim((string) $request->form('text', '')));

        return Response::redirect('/');
    });
})->use(new Csrf(new Vault($env->string('APP_SECRET'))));

$app->group('/api', function (App $api): void {
    $api->get('/notes', fn (Notes $notes): array => $notes->all());
    $api->get('/notes/{id:int}', fn (int $id, Notes $notes): array => ['text' => $notes->all()[$id] ?? throw new HttpException(404)]);
});

return $app;
