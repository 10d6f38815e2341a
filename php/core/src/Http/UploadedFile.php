<?php

declare(strict_types=1);

namespace Surus\Http;

/** A file of a form. What the client says about it is only what the client says. */
final class UploadedFile
{
    private bool $moved = false;

    /** @internal */
    public function __construct(
        private string $path,
        private readonly string $clientName,
        private readonly string $clientType,
        private readonly int $size,
        private readonly int $error,
        private readonly ?string $content = null,
    ) {
    }

    public function __destruct()
    {
        if ($this->content !== null && $this->path !== '' && !$this->moved) {
            @unlink($this->path);
        }
    }

    /** Whether all of it has come. */
    public function isValid(): bool
    {
        return $this->error === UPLOAD_ERR_OK && !$this->moved;
    }

    /** An UPLOAD_ERR_… constant. */
    public function error(): int
    {
        return $this->error;
    }

    /** Bytes. */
    public function size(): int
    {
        return $this->size;
    }

    /** The name on the client's disk, without folders. Never a name for a file of yours. */
    public function clientName(): string
    {
        return $this->clientName;
    }

    /** What the client says the type is. */
    public function clientType(): string
    {
        return $this->clientType;
    }

    /** The type that the content has. */
    public function type(): string
    {
        $known = $this->ask(FILEINFO_MIME_TYPE);

        return $known === '' ? 'application/octet-stream' : $known;
    }

    /** An extension that goes with the content's type; "bin" if none is known. */
    public function extension(): string
    {
        $first = explode('/', $this->ask(FILEINFO_EXTENSION))[0];

        return preg_match('/^[a-z0-9]+$/D', $first) === 1 ? $first : (['text/plain' => 'txt', 'image/svg+xml' => 'svg'][$this->type()] ?? 'bin');
    }

    /**
     * All of it, in memory.
     *
     * @throws \RuntimeException if it has not come whole, or was moved
     */
    public function contents(): string
    {
        $this->mustBeHere();

        return $this->content ?? (string) file_get_contents($this->path);
    }

    /**
     * The file itself; it goes away with the request.
     *
     * @throws \RuntimeException if it has not come whole, or was moved
     */
    public function path(): string
    {
        $this->mustBeHere();
        if ($this->content !== null && $this->path === '') {
            $path = tempnam(sys_get_temp_dir(), 'upload-');
            if ($path === false || file_put_contents($path, $this->content) !== $this->size) {
                throw new \RuntimeException('The uploaded file cannot be written to ' . sys_get_temp_dir());
            }
            $this->path = $path;
        }

        return $this->path;
    }

    /**
     * Keeps it. The folder must exist.
     *
     * @throws \RuntimeException if it has not come whole, was moved before, or cannot be written there
     */
    public function moveTo(string $path): void
    {
        $from = $this->path();
        if (!($this->content === null ? move_uploaded_file($from, $path) : rename($from, $path))) {
            throw new \RuntimeException("The uploaded file cannot be moved to $path");
        }
        $this->moved = true;
        if ($this->content !== null) {
            // As move_uploaded_file() does.
            chmod($path, 0666 & ~umask());
        }
    }

    private function ask(int $what): string
    {
        $this->mustBeHere();
        $info = new \finfo($what);

        return (string) ($this->content === null ? $info->file($this->path) : $info->buffer($this->content));
    }

    private function mustBeHere(): void
    {
        if (!$this->isValid()) {
            throw new \RuntimeException($this->moved ? 'The uploaded file was moved' : "The upload has failed ($this->error)");
        }
    }
}
