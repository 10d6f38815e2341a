<?php

declare(strict_types=1);

namespace App\Security;

use Symfony\Component\Security\Core\User\PasswordAuthenticatedUserInterface;
use Symfony\Component\Security\Core\User\UserInterface;

final class User implements UserInterface, PasswordAuthenticatedUserInterface
{
    public function __construct(private readonly string $name)
    {
    }

    public function getUserIdentifier(): string
    {
        return $this->name;
    }

    public function getUsername(): string
    {
        return $this->name;
    }

    public function getPassword(): string
    {
        return "secret of {$this->name}";
    }

    public function getSalt(): ?string
    {
        return null;
    }

    public function getRoles(): array
    {
        return ['ROLE_USER'];
    }

    public function eraseCredentials(): void
    {
    }
}
