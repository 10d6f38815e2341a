<?php

declare(strict_types=1);

namespace App\Controller;

use Symfony\Bundle\FrameworkBundle\Controller\AbstractController;
use Symfony\Component\HttpFoundation\Response;

final class Home extends AbstractController
{
    public function __invoke(): Response
    {
        return $this->render('home.html.twig', ['greeting' => $_ENV['APP_GREETING'] ?? 'no environment']);
    }
}
