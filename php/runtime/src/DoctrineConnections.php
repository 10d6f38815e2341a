<?php

declare(strict_types=1);

namespace Surus\Runtime;

use Symfony\Component\DependencyInjection\ContainerInterface;

/**
 * Connections of Doctrine, which stay open from one request to the next.
 *
 * @internal
 */
final class DoctrineConnections
{
    /**
     * Closes those with an open transaction, which is rolled back thereby; after a request that has failed all of them,
     * since the server may have closed them. Doctrine connects again when it needs one.
     */
    public static function close(ContainerInterface $container, bool $hasFailed): void
    {
        if (!$container->has('doctrine')) {
            return;
        }
        $registry = $container->get('doctrine');
        if (!is_object($registry) || !method_exists($registry, 'getConnectionNames')) {
            return;
        }
        foreach ($registry->getConnectionNames() as $service) {
            $connection = $container->initialized($service) ? $container->get($service) : null;
            if ($connection === null || !method_exists($connection, 'close')) {
                continue;
            }
            if ($hasFailed || (method_exists($connection, 'isTransactionActive') && $connection->isTransactionActive())) {
                $connection->close();
            }
        }
    }
}
