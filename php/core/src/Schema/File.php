<?php

declare(strict_types=1);

namespace Surus\Schema;

use Surus\Http\UploadedFile;

/**
 * Of a {@see UploadedFile}: how large it may be, checked before PHP is entered, and what it may be, by its content.
 */
#[\Attribute(\Attribute::TARGET_PARAMETER | \Attribute::TARGET_PROPERTY)]
final class File extends Constraint implements Rule
{
    /**
     * @param int|null $min bytes
     * @param int|null $max bytes; the class takes a form of 1 MiB as a whole unless its #[Input] says more
     * @param list<string> $types "image/png", "image/*"; what the client says about the type does not count
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
