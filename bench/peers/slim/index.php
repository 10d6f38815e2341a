<?php

// As in ../surus/app.php, with Slim 3 as Debian has it, justinrainbow/json-schema, PHP's own sessions and APCu.

declare(strict_types=1);

use JsonSchema\Validator;
use Psr\Http\Message\ResponseInterface as Response;
use Psr\Http\Message\ServerRequestInterface as Request;
use Slim\App;

require 'Slim/autoload.php';
require 'JsonSchema/autoload.php';

// nginx names every path as the script.
$_SERVER['SCRIPT_NAME'] = '/index.php';
$app = new App(['settings' => ['determineRouteBeforeAppMiddleware' => false]]);
$app->post('/orders', function (Request $request, Response $response): Response {
    $body = json_decode((string) $request->getBody());
    $validator = new Validator();
    $validator->validate($body, json_decode((string) file_get_contents(__DIR__ . '/order.json')));
    if (!$validator->isValid()) {
        $problem = ['title' => 'Unprocessable Content', 'status' => 422, 'errors' => $validator->getErrors()];

        return $response->withJson($problem, 422)->withHeader('Content-Type', 'application/problem+json');
    }
    $total = 0.0;
    foreach ($body->items as $item) {
        $total += $item->quantity * $item->price;
    }

    return $response->withJson(['customer' => $body->customer->email, 'items' => count($body->items), 'total' => $total]);
});

$session = function (Request $request, Response $response, callable $next): Response {
    // Read, and let go of at once, unless somebody wants to write.
    session_start(['read_and_close' => $request->getUri()->getPath() !== '/login', 'use_strict_mode' => true, 'name' => 'session']);

    return $next($request, $response);
};
$cors = function (Request $request, Response $response, callable $next): Response {
    $response = $next($request, $response)->withAddedHeader('Vary', 'Origin');

    return $request->getHeaderLine('Origin') !== 'https://app.example' ? $response : $response
        ->withHeader('Access-Control-Allow-Origin', 'https://app.example')->withHeader('Access-Control-Allow-Credentials', 'true');
};
$token = function (Request $request, Response $response, callable $next): Response {
    $parts = explode('.', substr($request->getHeaderLine('Authorization'), 7));
    $decode = static fn (string $text): string => (string) base64_decode(strtr($text, '-_', '+/'), true);
    $claims = count($parts) === 3 && hash_equals(hash_hmac('sha256', "$parts[0].$parts[1]", str_repeat('k', 32), true), $decode($parts[2]))
        ? json_decode($decode($parts[1]), true)
        : null;
    if ($claims === null || $claims['exp'] < time() || $claims['iss'] !== 'https://issuer.example' || $claims['aud'] !== 'api') {
        return $response->withStatus(401);
    }

    return $next($request->withAttribute('claims', $claims), $response);
};
$limit = function (Request $request, Response $response, callable $next): Response {
    $count = apcu_inc('limit:' . $request->getServerParams()['REMOTE_ADDR'] . ':' . intdiv(time(), 60), 1, $made, 120);

    return ($count > 1_000_000_000 ? $response->withStatus(429) : $next($request, $response))
        ->withHeader('RateLimit-Limit', '1000000000')->withHeader('RateLimit-Remaining', (string) (1_000_000_000 - $count));
};
$app->get('/login', function (Request $request, Response $response): Response {
    $_SESSION['user'] = 'ann';

    return $response->withJson(['in' => true]);
})->add($session);
$app->get('/account', fn (Request $request, Response $response): Response => $response->withJson([
    'session' => $_SESSION['user'], 'token' => $request->getAttribute('claims')['sub'],
]))->add($limit)->add($token)->add($session)->add($cors);

for ($i = 0, $count = (int) getenv('ROUTES'); $i < $count; $i++) {
    $app->get('/group' . $i % 100 . "/item$i/{id}", fn (Request $request, Response $response, array $args): Response
        => $response->withJson(['route' => $i, 'id' => $args['id']]));
}
$app->run();
