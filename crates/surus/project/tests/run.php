<?php

// surus php tests/run.php

declare(strict_types=1);

use Surus\Testing\Client;

// A database of its own: the environment wins over .env.
$folder = sys_get_temp_dir() . '/notes-' . bin2hex(random_bytes(4));
putenv("APP_DATABASE=$folder/notes.sqlite");

// In this process; Client::serve(dirname(__DIR__)) would start a server.
$client = Client::of(require dirname(__DIR__) . '/app.php');

$client->get('/api/notes/99')->assertStatus(404);
$page = $client->get('/')->assertStatus(200)->assertSee('<form');
$client->post('/', form: ['text' => 'no token'])->assertStatus(403);
preg_match('/name="_token" value="([^"]+)"/', $page->body, $token);
$text = '<b>note ' . bin2hex(random_bytes(4));
$client->post('/', form: ['_token' => $token[1], 'text' => $text])->assertStatus(303)->assertHeader('location', '/');
$client->get('/')->assertSee(htmlspecialchars($text));
$notes = $client->get('/api/notes')->assertStatus(200)->json();
assert(in_array($text, array_column($notes, 'text'), true));
array_map(unlink(...), glob("$folder/*") ?: []);
rmdir($folder);

echo "{$client->assertions()} assertions hold\n";
