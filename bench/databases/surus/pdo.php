<?php

/** The same with PDO, from a pool. */

declare(strict_types=1);

use Surus\App;
use Surus\Pool;

$pool = new Pool(
    fn (): PDO => new PDO('pgsql:' . str_replace(' ', ';', (string) getenv('DATABASE')), options: [PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC]),
    max: (int) getenv('CONNECTIONS'),
);
$app = new App();

/** @return list<array<string, int>> */
function worlds(PDO $db, int $id, int $count): array
{
    $statement = $db->prepare('SELECT id, randomnumber FROM world WHERE id = ?');
    $rows = [];
    for ($number = 0; $number < $count; $number++) {
        $statement->execute([$id + $number]);
        $rows[] = $statement->fetch();
    }

    return $rows;
}

$app->get('/db/{id:int}', fn (int $id): array => $pool->use(fn (PDO $db) => worlds($db, $id, 1)[0]));

$app->get('/queries/{id:int}', fn (int $id): array => $pool->use(fn (PDO $db) => worlds($db, $id, 20)));

$app->get('/fortunes', function () use ($pool): string {
    $rows = $pool->use(fn (PDO $db) => $db->query('SELECT id, message FROM fortune')->fetchAll());
    $rows[] = ['id' => 0, 'message' => 'Additional fortune added at request time.'];
    usort($rows, fn (array $a, array $b): int => strcmp($a['message'], $b['message']));
    $html = '';
    foreach ($rows as ['id' => $id, 'message' => $message]) {
        $html .= "<tr><td>$id</td><td>" . htmlspecialchars($message) . '</td></tr>';
    }

    return "<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table><tr><th>id</th><th>message</th></tr>$html</table></body></html>";
});

$app->get('/updates/{id:int}', fn (int $id): array => $pool->use(function (PDO $db) use ($id): array {
    $rows = worlds($db, $id, 20);
    foreach ($rows as &$row) {
        $row['randomnumber'] = random_int(1, 10000);
    }
    $list = fn (string $key): string => '{' . implode(',', array_column($rows, $key)) . '}';
    $db->prepare('UPDATE world SET randomnumber = new.number FROM unnest(?::int[], ?::int[]) AS new (id, number) WHERE world.id = new.id')
        ->execute([$list('id'), $list('randomnumber')]);

    return $rows;
}));

return $app;
