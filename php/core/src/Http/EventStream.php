<?php

declare(strict_types=1);

namespace Surus\Http;

use function Surus\Internal\json;

/** @internal server-sent events, in the format of the HTML standard */
final class EventStream
{
    /**
     * @param iterable<mixed> $events
     *
     * @return \Generator<int, string>
     */
    public static function encode(iterable $events): \Generator
    {
        foreach ($events as $event) {
            $fields = is_array($event) && array_key_exists('data', $event) ? $event : ['data' => $event];
            $text = '';
            foreach (['event', 'id', 'retry'] as $name) {
                if (isset($fields[$name])) {
                    // A line break would begin another field.
                    $text .= "$name: " . str_replace(["\r", "\n", "\0"], '', (string) $fields[$name]) . "\n";
                }
            }
            $data = $fields['data'];
            $data = is_string($data) ? $data : json($data);
            foreach (preg_split('/\r\n|\r|\n/', $data) ?: [] as $line) {
                $text .= "data: $line\n";
            }
            yield $text . "\n";
        }
    }
}
