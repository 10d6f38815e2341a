<?php

declare(strict_types=1);

namespace App\Doctrine;

use Doctrine\ORM\EntityManager;
use Doctrine\Persistence\AbstractManagerRegistry;
use Doctrine\Persistence\Proxy;
use Symfony\Component\DependencyInjection\ContainerInterface;
use Symfony\Contracts\Service\ResetInterface;

/** As DoctrineBundle has it: resets entity managers, and makes new ones in place of those that are closed. */
final class Registry extends AbstractManagerRegistry implements ResetInterface
{
    public function __construct(private readonly ContainerInterface $container)
    {
        $connections = ['default' => 'doctrine.dbal.default_connection'];
        parent::__construct('ORM', $connections, ['default' => 'doctrine.orm.default_entity_manager'], 'default', 'default', Proxy::class);
    }

    public function reset(): void
    {
        foreach ($this->getManagerNames() as $name => $service) {
            $manager = $this->container->initialized($service) ? $this->container->get($service) : null;
            if ($manager instanceof EntityManager) {
                $manager->isOpen() ? $manager->clear() : $this->resetManager($name);
            }
        }
    }

    protected function getService($name): object
    {
        return $this->container->get($name);
    }

    protected function resetService($name): void
    {
        $this->container->set($name, null);
    }
}
