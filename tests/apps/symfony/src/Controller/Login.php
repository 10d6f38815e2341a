<?php

declare(strict_types=1);

namespace App\Controller;

use Symfony\Bundle\FrameworkBundle\Controller\AbstractController;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\Security\Http\Authentication\AuthenticationUtils;

final class Login extends AbstractController
{
    public function __invoke(AuthenticationUtils $utils): Response
    {
        return $this->render('login.html.twig', ['error' => $utils->getLastAuthenticationError(), 'last' => $utils->getLastUsername()]);
    }
}
