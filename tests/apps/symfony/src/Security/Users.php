<?php

declare(strict_types=1);

namespace App\Security;

use Symfony\Component\Security\Core\Exception\UserNotFoundException;
use Symfony\Component\Security\Core\User\UserInterface;
use Symfony\Component\Security\Core\User\UserProviderInterface;

/** Everybody whose name is "u" and a number. */
final class Users implements UserProviderInterface
{
    public function loadUserByIdentifier(string $identifier): UserInterface
    {
        if (!preg_match('/^u\d+$/', $identifier)) {
            throw new UserNotFoundException();
        }

        return new User($identifier);
    }

    public function loadUserByUsername(string $username): UserInterface
    {
        return $this->loadUserByIdentifier($username);
    }

    public function refreshUser(UserInterface $user): UserInterface
    {
        return $this->loadUserByIdentifier($user->getUserIdentifier());
    }

    public function supportsClass(string $class): bool
    {
        return $class === User::class;
    }
}
