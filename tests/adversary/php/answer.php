<?php

/** What both front controllers do with a request: one operation, and what its server has said. */

declare(strict_types=1);

require __DIR__ . '/exchange.php';

/** @return array<string, Closure(Exchange): void> by extension and name */
function operations(): array
{
    static $operations = null;
    if ($operations === null) {
        $operations = [];
        foreach (glob(__DIR__ . '/operations/*.php') as $file) {
            foreach (require $file as $name => $operation) {
                $operations[basename($file, '.php') . '.' . $name] = $operation;
            }
        }
    }

    return $operations;
}

/**
 * @param array<string, string> $query
 * @param Closure(): string $upload
 * @return array{int, string} status and body
 */
function answer(array $query, Closure $upload): array
{
    $exchange = new Exchange($query['token'], (int) $query['delay'], $query['end'], (int) $query['at'], $upload);
    try {
        operations()[$query['operation']]($exchange);
    } catch (Planned $planned) {
        throw $planned;
    } catch (Throwable $error) {
        return [500, get_class($error) . ': ' . $error->getMessage()];
    }

    return [200, 'heard ' . implode(' ', $exchange->heard)];
}
