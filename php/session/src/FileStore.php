<?php

declare(strict_types=1);

namespace Surus\Session;

/** A file for each session. One in a hundred writes deletes old ones. */
final class FileStore implements Store
{
    private const LOCKS = 16;

    /**
     * @param string $folder made if it does not exist, readable only by the owner
     *
     * @throws \RuntimeException if it cannot be made
     */
    public function __construct(private readonly string $folder)
    {
        if (!is_dir($folder) && !@mkdir($folder, 0700, true) && !is_dir($folder)) {
            throw new \RuntimeException("The folder for sessions cannot be made: $folder");
        }
    }

    public function read(string $id): ?string
    {
        $data = @file_get_contents($this->path($id));
        if ($data === false || strlen($data) < 8) {
            return null;
        }
        $until = unpack('J', $data);

        return $until !== false && $until[1] >= time() ? substr($data, 8) : null;
    }

    public function write(string $id, string $data, int $seconds): void
    {
        $path = $this->path($id);
        $new = $path . '.' . bin2hex(random_bytes(4));
        $mask = umask(0077);
        $written = file_put_contents($new, pack('J', time() + $seconds) . $data);
        umask($mask);
        // A concurrent reader gets the complete old or the complete new file.
        if ($written === false || !rename($new, $path)) {
            throw new \RuntimeException("The session cannot be written to $this->folder");
        }
        if (random_int(1, 100) === 1) {
            $this->sweep();
        }
    }

    public function update(string $id, string $data, int $seconds): bool
    {
        return $this->alone($id, function () use ($id, $data, $seconds): bool {
            $isThere = is_file($this->path($id));
            if ($isThere) {
                $this->write($id, $data, $seconds);
            }

            return $isThere;
        });
    }

    public function delete(string $id): void
    {
        $this->alone($id, fn (): bool => @unlink($this->path($id)));
    }

    /**
     * Runs $work while no other request updates or deletes this session.
     *
     * @param \Closure(): bool $work
     */
    private function alone(string $id, \Closure $work): bool
    {
        // A few lock files for all sessions, which are never deleted.
        $mask = umask(0077);
        $lock = @fopen("$this->folder/lock-" . crc32($id) % self::LOCKS, 'c');
        umask($mask);
        if ($lock === false || !flock($lock, LOCK_EX)) {
            throw new \RuntimeException("The session cannot be locked in $this->folder");
        }
        try {
            clearstatcache(true, $this->path($id));

            return $work();
        } finally {
            fclose($lock);
        }
    }

    /** Deletes old sessions. */
    public function sweep(): void
    {
        foreach (glob("$this->folder/session-*") ?: [] as $file) {
            $until = unpack('J', (string) @file_get_contents($file, length: 8) . "\0\0\0\0\0\0\0\0");
            if ($until !== false && $until[1] < time()) {
                @unlink($file);
            }
        }
    }

    private function path(string $id): string
    {
        return "$this->folder/session-" . preg_replace('/[^A-Za-z0-9_-]/', '', $id);
    }
}
