<?php

declare(strict_types=1);

namespace App\Controller;

use App\Visits;
use Doctrine\DBAL\Connection;
use Symfony\Bundle\FrameworkBundle\Controller\AbstractController;
use Symfony\Component\HttpFoundation\JsonResponse;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\RequestStack;
use Symfony\Component\HttpFoundation\Response;

/** What tests ask. */
final class Probes extends AbstractController
{
    public function __construct(private readonly Visits $visits, private readonly Connection $connection)
    {
    }

    /** Who is logged in, before and after a wait in the database. */
    public function who(string $seen, Request $request, RequestStack $requests): Response
    {
        $this->visits->note($seen);
        $before = $this->getUser()?->getUserIdentifier();
        $said = $this->connection->fetchOne('SELECT :seen FROM pg_sleep(0.02)', ['seen' => $seen]);

        return new JsonResponse([
            'before' => $before,
            'after' => $this->getUser()?->getUserIdentifier(),
            'said' => $said,
            'query' => $requests->getCurrentRequest()?->query->get('q'),
            'global' => $_GET['q'] ?? null,
            'session' => $request->getSession()->getId(),
            'noted' => $this->visits->noted(),
        ]);
    }

    /** What requests of somebody have written after their responses. */
    public function seen(string $by): Response
    {
        return new JsonResponse($this->connection->fetchFirstColumn('SELECT what FROM symfony_visits WHERE owner = ? ORDER BY id', [$by]));
    }

    public function count(): Response
    {
        $this->visits->note('count');
        gc_collect_cycles();

        return new JsonResponse([
            'served' => ++Visits::$served,
            'noted' => count($this->visits->noted()),
            'memory' => memory_get_usage(),
            'transaction' => $this->connection->isTransactionActive(),
            'route' => $this->generateUrl('home'),
        ]);
    }

    public function wait(): Response
    {
        $this->connection->executeQuery('SELECT pg_sleep(1)');

        return new Response('waited');
    }

    public function leave(): never
    {
        $this->visits->note('never written');
        exit('left');
    }

    /** Leaves a transaction open. */
    public function open(): Response
    {
        $this->connection->beginTransaction();
        $this->connection->insert('symfony_visits', ['owner' => 'open', 'what' => 'uncommitted']);

        return new Response('open');
    }

    public function escape(): Response
    {
        throw new \RuntimeException('it escapes');
    }

    public function fail(): Response
    {
        throw new \RuntimeException('it fails');
    }

    /** The database ends the connection behind its back. */
    public function cut(): Response
    {
        $this->connection->executeQuery('SELECT pg_terminate_backend(pg_backend_pid())');

        return new Response('not reached');
    }
}
