<?php

declare(strict_types=1);

namespace App\Controller;

use App\Entity\Note;
use App\Visits;
use Doctrine\Persistence\ManagerRegistry;
use Symfony\Bundle\FrameworkBundle\Controller\AbstractController;
use Symfony\Component\Form\Extension\Core\Type\TextType;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;

/** The notes of who is logged in, and a form for another one. */
final class Notes extends AbstractController
{
    public function __invoke(Request $request, ManagerRegistry $doctrine, Visits $visits): Response
    {
        $owner = $this->getUser()?->getUserIdentifier() ?? '';
        $note = new Note($owner);
        $form = $this->createFormBuilder($note)->add('text', TextType::class, ['empty_data' => ''])->getForm();
        $form->handleRequest($request);
        $manager = $doctrine->getManager();
        if ($form->isSubmitted() && $form->isValid()) {
            $manager->getConnection()->executeQuery('SELECT pg_sleep(0.02)');
            $manager->persist($note);
            $manager->flush();
            $visits->note("note {$note->text}");
            $this->addFlash('saved', $note->text);

            return $this->redirectToRoute('notes');
        }
        $notes = $manager->getRepository(Note::class)->findBy(['owner' => $owner], ['id' => 'ASC']);

        return $this->renderForm('notes.html.twig', ['form' => $form, 'notes' => $notes, 'owner' => $owner]);
    }
}
