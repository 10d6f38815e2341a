<?php

// What all peers do: an order of a customer, validated, answered with its total; a user behind CORS, a session, a token
// and a rate limit; and as many routes as $ROUTES says.

declare(strict_types=1);

use Surus\App;
use Surus\Auth\BearerAuth;
use Surus\Auth\Jwt;
use Surus\Auth\Key;
use Surus\Auth\Keys;
use Surus\Auth\User;
use Surus\Http\Request;
use Surus\Middleware\Cors;
use Surus\Middleware\RateLimit;
use Surus\Middleware\Sessions;
use Surus\Security\Vault;
use Surus\Session\CookieStore;
use Surus\Schema\{Each, Email, Items, Length, Pattern, Range};

final class Address
{
    public function __construct(
        #[Length(min: 1, max: 100)] public readonly string $street,
        #[Length(min: 1, max: 50)] public readonly string $city,
        #[Pattern('^[0-9]{5}$')] public readonly string $zip,
    ) {
    }
}

final class Customer
{
    public function __construct(
        #[Length(min: 1, max: 50)] public readonly string $name,
        #[Email] public readonly string $email,
        public readonly Address $address,
        public readonly ?int $age = null,
    ) {
    }
}

final class Item
{
    public function __construct(
        #[Length(min: 3, max: 20)] public readonly string $sku,
        #[Length(min: 1, max: 100)] public readonly string $title,
        #[Range(min: 1, max: 1000)] public readonly int $quantity,
        #[Range(min: 0)] public readonly float $price,
    ) {
    }
}

enum Priority: string
{
    case Low = 'low';
    case Normal = 'normal';
    case High = 'high';
}

final class Order
{
    /** @param list<string> $tags */
    public function __construct(
        public readonly Customer $customer,
        #[Items(min: 1, max: 2000), Each(Item::class)] public readonly array $items,
        public readonly Priority $priority = Priority::Normal,
        #[Items(max: 10), Each('string', [new Length(max: 20)])] public readonly array $tags = [],
        #[Length(max: 500)] public readonly ?string $note = null,
    ) {
    }
}

$app = new App();
$app->post('/orders', function (Order $order): array {
    $total = 0.0;
    foreach ($order->items as $item) {
        $total += $item->quantity * $item->price;
    }

    return ['customer' => $order->customer->email, 'items' => count($order->items), 'total' => $total];
});

$jwt = new Jwt(Keys::of(Key::secret(str_repeat('k', 32))), 'https://issuer.example', 'api');
$sessions = new Sessions(new CookieStore(new Vault(str_repeat('s', 32))));
$app->get('/login', function (Request $request): array {
    Sessions::of($request)->set('user', 'ann');

    return ['in' => true];
})->use($sessions);
$app->get('/account', fn (Request $request): array => [
    'session' => Sessions::of($request)->get('user'), 'token' => User::of($request)['sub'],
])->use(
    new Cors(['https://app.example'], credentials: true),
    $sessions,
    new BearerAuth($jwt->verify(...)),
    new RateLimit(1_000_000_000, 60),
);

for ($i = 0, $count = (int) getenv('ROUTES'); $i < $count; $i++) {
    $app->get('/group' . $i % 100 . "/item$i/{id}", fn (string $id): array => ['route' => $i, 'id' => $id]);
}

return $app;
