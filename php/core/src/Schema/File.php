<?php

declare(strict_types=1);

namespace Surus\Schema;

use Surus\Http\UploadedFile;

/**
 * Limits of a {@see UploadedFile}: its size, checked before PHP is entered, and its type, detected from its content.
 */
#[\Attribute(\Attribute::TARGET_PARAMETER | \Attribute::TARGET_PROPERTY)]
final class File extends Constraint implements Rule
{
    /**
     * @param int|null $min bytes
     * @param int|null $max bytes; the whole form may have 1 MiB unless #[Input] of the class allows more
     * @param list<string> $types "image/png", "image/*"; the type that the client sends is ignored
     */
    public function __construct(
        public readonly ?int $min = null,
        public readonly ?int $max = null,
        public readonly array $types = [],
        ?string $message = null,
    ) {
        parent::__construct($message);
    }

    public function shapes(): array
    {
        return ['file'];
    }

    public function keywords(): array
    {
        return ['minBytes' => $this->min, 'maxBytes' => $this->max];
    }

    public function check(mixed $value, object $subject): ?string
    {
        if (!$value instanceof UploadedFile || $this->types === []) {
            return null;
        }
        $type = $value->type();
        foreach ($this->types as $allowed) {
            if ($type === $allowed || (str_ends_with($allowed, '/*') && str_starts_with($type, substr($allowed, 0, -1)))) {
                return null;
            }
        }

        return $this->message ?? 'must be ' . implode(' or ', $this->types) . ", is $type";
    }
}
