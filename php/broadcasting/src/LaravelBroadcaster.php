<?php

declare(strict_types=1);

namespace Surus\Broadcasting;

use Illuminate\Broadcasting\BroadcastException;
use Illuminate\Broadcasting\Broadcasters\Broadcaster;
use Illuminate\Broadcasting\Broadcasters\UsePusherChannelConventions;
use Illuminate\Http\Request;
use Symfony\Component\HttpKernel\Exception\AccessDeniedHttpException;

/** Broadcasts events of Laravel to clients of the Pusher protocol, and answers who may subscribe. */
final class LaravelBroadcaster extends Broadcaster
{
    use UsePusherChannelConventions;

    public function __construct(private readonly Credentials $credentials, private readonly Publisher $publisher)
    {
    }

    /**
     * @param Request $request
     *
     * @throws AccessDeniedHttpException if the user may not
     */
    public function auth($request): mixed
    {
        $name = $request->input('channel_name');
        if (!is_string($name) || $name === '') {
            throw new AccessDeniedHttpException();
        }
        $channel = $this->normalizeChannelName($name);
        if ($this->isGuardedChannel($name) && !$this->retrieveUser($request, $channel)) {
            throw new AccessDeniedHttpException();
        }

        return $this->verifyUserCanAccessChannel($request, $channel);
    }

    /**
     * @param Request $request
     * @param mixed $result what the callback of the channel has returned
     *
     * @return array<string, string>
     */
    public function validAuthenticationResponse($request, $result): array
    {
        [$name, $socket] = [$request->input('channel_name'), $request->input('socket_id')];
        if (!is_string($name) || !is_string($socket)) {
            throw new AccessDeniedHttpException();
        }
        try {
            if (!str_starts_with($name, 'presence-')) {
                return $this->credentials->channel($socket, $name);
            }

            return $this->credentials->member($socket, $name, self::idOf($this->retrieveUser($request, $this->normalizeChannelName($name))), $result);
        } catch (\ValueError $error) {
            throw new AccessDeniedHttpException($error->getMessage(), $error);
        }
    }

    /**
     * For `pusher.signin()`: since Laravel 9, with what `Broadcast::resolveAuthenticatedUserUsing()` was given.
     *
     * @param Request $request
     *
     * @return array<string, string>|null
     */
    public function resolveAuthenticatedUser($request): ?array
    {
        // Laravel 8 has no such method.
        $user = is_callable([parent::class, 'resolveAuthenticatedUser']) ? parent::resolveAuthenticatedUser($request) : null;
        $socket = $request->input('socket_id');

        try {
            return is_array($user) && is_string($socket) ? $this->credentials->user($socket, $user) : null;
        } catch (\ValueError $error) {
            throw new AccessDeniedHttpException($error->getMessage(), $error);
        }
    }

    /**
     * @param array<mixed> $channels
     * @param string $event
     * @param array<string, mixed> $payload
     *
     * @throws BroadcastException if it cannot be published
     */
    public function broadcast(array $channels, $event, array $payload = []): void
    {
        $socket = $payload['socket'] ?? null;
        unset($payload['socket']);
        $names = array_map(strval(...), array_values($this->formatChannels($channels)));
        try {
            $this->publisher->publish($names, $event, $payload, is_string($socket) ? $socket : null);
        } catch (BroadcastFailure $failure) {
            throw new BroadcastException($failure->getMessage(), 0, $failure);
        }
    }

    private static function idOf(mixed $user): string
    {
        $id = match (true) {
            !is_object($user) => null,
            method_exists($user, 'getAuthIdentifierForBroadcasting') => $user->getAuthIdentifierForBroadcasting(),
            method_exists($user, 'getAuthIdentifier') => $user->getAuthIdentifier(),
            default => null,
        };
        if (!is_string($id) && !is_int($id)) {
            throw new AccessDeniedHttpException('The user has no identifier');
        }

        return (string) $id;
    }
}
