<?php

declare(strict_types=1);

namespace App\Doctrine;

use Doctrine\DBAL\Connection;
use Doctrine\DBAL\DriverManager;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\ORMSetup;
use Symfony\Component\Cache\Adapter\PhpFilesAdapter;

final class Factory
{
    public static function connection(string $port): Connection
    {
        return DriverManager::getConnection([
            'driver' => 'pdo_pgsql',
            'host' => '127.0.0.1',
            'port' => (int) $port,
            'dbname' => 'postgres',
            'user' => 'postgres',
        ]);
    }

    public static function entityManager(Connection $connection, string $entities, string $cache): EntityManager
    {
        $configuration = ORMSetup::createAttributeMetadataConfiguration([$entities], false, $cache, new PhpFilesAdapter('', 0, $cache));
        $configuration->setAutoGenerateProxyClasses(true);

        return new EntityManager($connection, $configuration);
    }
}
