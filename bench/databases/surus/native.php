<?php

/** The loads with Surus\Postgres. */

declare(strict_types=1);

use Surus\App;
use Surus\Postgres;

$db = new Postgres((string) getenv('DATABASE'), (int) getenv('CONNECTIONS'));
$app = new App();
const ONE = 'SELECT id, randomnumber FROM world WHERE id = $1';

/** @return list<array<string, mixed>> */
function worlds(Postgres $db, int $id): array
{
    return array_merge(...$db->queryEach(ONE, array_map(fn (int $id): array => [$id], range($id, $id + 19))));
}

$app->get('/db/{id:int}', fn (int $id): ?array => $db->queryOne(ONE, [$id]));

$app->get('/queries/{id:int}', fn (int $id): array => worlds($db, $id));

$app->get('/fortunes', function () use ($db): string {
    $rows = $db->query('SELECT id, message FROM fortune');
    $rows[] = ['id' => 0, 'message' => 'Additional fortune added at request time.'];
    usort($rows, fn (array $a, array $b): int => strcmp($a['message'], $b['message']));
    $html = '';
    foreach ($rows as ['id' => $id, 'message' => $message]) {
        $html .= "<tr><td>$id</td><td>" . htmlspecialchars($message) . '</td></tr>';
    }

    return "<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table><tr><th>id</th><th>message</th></tr>$html</table></body></html>";
});

$app->get('/updates/{id:int}', function (int $id) use ($db): array {
    $rows = worlds($db, $id);
    foreach ($rows as &$row) {
        $row['randomnumber'] = random_int(1, 10000);
    }
    $db->execute(
        'UPDATE world SET randomnumber = new.number FROM unnest($1::int[], $2::int[]) AS new (id, number) WHERE world.id = new.id',
        [array_column($rows, 'id'), array_column($rows, 'randomnumber')],
    );

    return $rows;
});

return $app;
