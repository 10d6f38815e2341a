<?php

declare(strict_types=1);

namespace App;

use Surus\BootError;
use Surus\Pool;

/**
 * A database in a file (SQLite). One connection of each worker writes, others read at the same time: who waits for another
 * process to write lets other requests run.
 */
final class Database
{
    private const SCHEMA = 'CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)';

    /** @var Pool<\PDO> */
    private readonly Pool $readers;

    /** @var Pool<\PDO> */
    private readonly Pool $writer;

    public function __construct(private readonly string $file)
    {
        if (!extension_loaded('pdo_sqlite')) {
            $package = 'php' . PHP_MAJOR_VERSION . '.' . PHP_MINOR_VERSION . '-sqlite3';
            throw new BootError("PHP has no pdo_sqlite, which this application keeps its data with: install it (Debian's package is $package)");
        }
        $this->create();
        $this->readers = new Pool($this->open(...), max: 4);
        $this->writer = new Pool($this->open(...), max: 1, timeout: 30);
    }

    /** @param \Closure(\PDO): mixed $work */
    public function read(\Closure $work): mixed
    {
        return $this->readers->use($work);
    }

    /** @param \Closure(\PDO): mixed $work */
    public function write(\Closure $work): mixed
    {
        return $this->writer->use($work);
    }

    private function open(): \PDO
    {
        // Seconds to wait for a lock of another process.
        $db = new \PDO("sqlite:$this->file", options: [\PDO::ATTR_TIMEOUT => 15]);
        // With a write-ahead log a commit need not wait for the disk.
        $db->exec('PRAGMA synchronous = NORMAL');

        return $db;
    }

    /** All workers boot at once: the lock lets one of them after the other do this. */
    private function create(): void
    {
        $folder = dirname($this->file);
        if (!is_dir($folder) && !@mkdir($folder, 0o750, true) && !is_dir($folder)) {
            throw new BootError("The folder $folder cannot be made: make it, for the user that the server runs as");
        }
        $lock = @fopen("$this->file.lock", 'c');
        if ($lock === false || !flock($lock, LOCK_EX)) {
            throw new BootError("No files can be written in $folder: give it to the user that the server runs as");
        }
        try {
            $db = $this->open();
            $db->exec('PRAGMA journal_mode = WAL');
            $db->exec(self::SCHEMA);
        } finally {
            fclose($lock);
        }
    }
}
