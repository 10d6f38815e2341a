<?php

declare(strict_types=1);

namespace Surus;

/** A job of Surus\offload() has thrown an exception, or has ended without a result. */
final class OffloadException extends \RuntimeException
{
    /**
     * @internal Surus\offload() throws it
     * @param class-string<\Throwable>|null $thrownClass
     */
    public function __construct(
        string $message,
        private readonly ?string $thrownClass = null,
        private readonly string $thrownText = '',
        int $code = 0,
        ?\Throwable $previous = null,
    ) {
        parent::__construct($message, $code, $previous);
    }

    /**
     * The class of the exception that the job has thrown; null: it has thrown none, but could not run, was killed or has
     * ended with exit() or a fatal error. The message says which.
     *
     * @return class-string<\Throwable>|null
     */
    public function getThrownClass(): ?string
    {
        return $this->thrownClass;
    }

    /** That exception with its place, its trace and what came before it, as PHP prints it; empty if there is none. */
    public function getThrownText(): string
    {
        return $this->thrownText;
    }
}
