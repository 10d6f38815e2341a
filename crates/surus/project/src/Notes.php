<?php

declare(strict_types=1);

namespace App;

/** Notes in a database. */
final class Notes
{
    public function __construct(private readonly Database $database)
    {
    }

    /** @return list<array{id: int, text: string}> the newest first */
    public function latest(int $count = 100): array
    {
        return $this->database->read(static function (\PDO $db) use ($count): array {
            $rows = $db->prepare('SELECT id, text FROM notes ORDER BY id DESC LIMIT ?');
            $rows->execute([$count]);

            return $rows->fetchAll(\PDO::FETCH_ASSOC);
        });
    }

    public function find(int $id): ?string
    {
        return $this->database->read(static function (\PDO $db) use ($id): ?string {
            $row = $db->prepare('SELECT text FROM notes WHERE id = ?');
            $row->execute([$id]);
            $text = $row->fetchColumn();

            return $text === false ? null : $text;
        });
    }

    /** Returns its id. */
    public function add(string $text): int
    {
        return $this->database->write(static function (\PDO $db) use ($text): int {
            $db->prepare('INSERT INTO notes (text) VALUES (?)')->execute([$text]);

            return (int) $db->lastInsertId();
        });
    }
}
