<?php

declare(strict_types=1);

namespace Surus\Http;

/** A file of a form. Name and type are sent by the client and cannot be trusted. */
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

    /** Whether the whole file has arrived, and was not moved. */
    public function isValid(): bool
    {
        return $this->error === UPLOAD_ERR_OK && !$this->moved;
    }

    /** An UPLOAD_ERR_… constant. */
    public function error(): int
    {
        return $this->error;
    }

    /** The size in bytes. */
    public function size(): int
    {
        return $this->size;
    }

    /** The name on the client's disk, without folders. Never use it as a name for a file on the server. */
    public function clientName(): string
    {
        return $this->clientName;
    }

    /** The type that the client has sent. */
    public function clientType(): string
    {
        return $this->clientType;
    }

    /** The type, detected from the content. */
    public function type(): string
    {
        $known = $this->ask(FILEINFO_MIME_TYPE);

        return $known === '' ? 'application/octet-stream' : $known;
    }

    /** An extension for the content's type; "bin" if none is known. */
    public function extension(): string
    {
        $first = explode('/', $this->ask(FILEINFO_EXTENSION))[0];

        return preg_match('/^[a-z0-9]+$/D', $first) === 1 ? $first : (['text/plain' => 'txt', 'image/svg+xml' => 'svg'][$this->type()] ?? 'bin');
    }

    /**
     * The whole content, in memory.
     *
     * @throws \RuntimeException if the upload is incomplete, or the file was moved
     */
    public function contents(): string
    {
        $this->mustBeHere();

        return $this->content ?? (string) file_get_contents($this->path);
    }

    /**
     * The path of the temporary file; it is deleted at the end of the request.
     *
     * @throws \RuntimeException if the upload is incomplete, or the file was moved
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
     * Moves the file to a permanent place. The folder must exist.
     *
     * @throws \RuntimeException if the upload is incomplete, the file was moved before, or cannot be written there
     */
    public function moveTo(string $path): void
    {
        $from = $this->path();
        if (!($this->content === null ? move_uploaded_file($from, $path) : rename($from, $path))) {
            throw new \RuntimeException("The uploaded file cannot be moved to $path");
        }
        $this->moved = true;
        if ($this->content !== null) {
            // The same as move_uploaded_file().
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
