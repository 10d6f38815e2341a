<?php

/** The mixed load of `memory/run` in coroutine mode: one route for each kind of request. */

declare(strict_types=1);

use Surus\App;
use Surus\Http\Request;
use Surus\Http\Response;

final class Refused extends RuntimeException
{
    public function getStatusCode(): int
    {
        return 500;
    }
}

$app = new App();
$app->get('/json', fn (): array => ['message' => 'ok', 'numbers' => range(1, 20)]);
$app->get('/users/{id}', fn (string $id): array => ['id' => $id]);
$app->get('/get', fn (): string => 'ok ' . $_GET['name'] . count($_SERVER));
$app->post('/form', fn (): string => 'ok ' . $_POST['name']);
$app->post('/body', fn (Request $request): Response => new Response($request->body(), headers: ['content-type' => 'text/plain']));
$app->get('/echo', function (): void {
    header('X-Shape: round');
    setcookie('seen', '1');
    ob_start(strtoupper(...));
    echo 'ok';
    ob_end_flush();
});
$app->get('/session', function (): string {
    session_id($_GET['id']);
    session_start(['use_cookies' => '0', 'save_path' => sys_get_temp_dir()]);
    $_SESSION['count'] = ($_SESSION['count'] ?? 0) + 1;
    session_write_close();
    return 'ok ' . $_SESSION['count'];
});
$app->get('/exception', fn () => throw new Refused('as asked for'));
$app->get('/park', function (): string {
    $text = str_repeat('x', 10_000);
    usleep(1000);
    return 'ok ' . strlen($text);
});
$app->get('/park-state', function (): string {
    ini_set('precision', '5');
    date_default_timezone_set('Asia/Tokyo');
    set_error_handler(static fn (): bool => true);
    $name = $_GET['name'];
    usleep(1000);
    echo $undefined ?? '';
    return 'ok ' . ($name === $_GET['name'] ? ini_get('precision') : 'changed');
});
$app->get('/cycle', function (): string {
    $first = new stdClass();
    $second = new stdClass();
    $first->other = $second;
    $second->other = $first;
    return 'ok';
});
$app->get('/fiber', function (): string {
    $fiber = new Fiber(function (): string {
        usleep(500);
        return Fiber::suspend('ok');
    });
    return $fiber->start();
});
$app->get('/exit', function (): void {
    echo 'ok';
    exit;
});
$app->get('/stream', function (): Generator {
    yield 'ok';
    yield ' and ';
    yield 'more';
});
$app->get('/shutdown', function (): string {
    register_shutdown_function(static function (): void {
        echo ' afterwards';
    });
    return 'ok';
});
$app->get('/memory', fn (): array => [
    'usage' => memory_get_usage(),
    'real' => memory_get_usage(true),
    'peak' => memory_get_peak_usage(true),
    'cycles' => gc_status()['roots'],
]);

return $app;
