<?php

declare(strict_types=1);

namespace Surus\Http;

/** A file of a form. What the client says about it is only what the client says. */
final class UploadedFile
{
    private bool $moved = false;

    /** @internal */
    public function __construct(
        private readonly string $path,
        private readonly string $clientName,
        private readonly string $clientType,
        private readonly int $size,
        private readonly int $error,
    ) {
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
        return mime_content_type($this->path()) ?: 'application/octet-stream';
    }

    /** An extension that goes with the content's type; "bin" if none is known. */
    public function extension(): string
    {
        $known = (string) (new \finfo(FILEINFO_EXTENSION))->file($this->path());
        $first = explode('/', $known)[0];

        return preg_match('/^[a-z0-9]+$/D', $first) === 1 ? $first : (['text/plain' => 'txt', 'image/svg+xml' => 'svg'][$this->type()] ?? 'bin');
    }

    public function contents(): string
    {
        return (string) file_get_contents($this->path());
    }

    /**
     * The file itself; it goes away with the request.
     *
     * @throws \RuntimeException if it has not come whole, or was moved
     */
    public function path(): string
    {
        if (!$this->isValid()) {
            throw new \RuntimeException($this->moved ? 'The uploaded file was moved' : "The upload has failed ($this->error)");
        }

        return $this->path;
    }

    /** Keeps it. The folder must exist. */
    public function moveTo(string $path): void
    {
        if (!move_uploaded_file($this->path(), $path)) {
            throw new \RuntimeException("The uploaded file cannot be moved to $path");
        }
        $this->moved = true;
    }
}
