<?php

declare(strict_types=1);

namespace Surus\Broadcasting;

/**
 * Signs who may subscribe to which channel: what a page's client of the Pusher protocol asks the application for.
 *
 *     $credentials = new Credentials('app-key', getenv('PUSHER_APP_SECRET'));
 *     return $credentials->channel($form['socket_id'], $form['channel_name']);
 *
 * Ask first whether the user may: who has the signature may.
 */
final class Credentials
{
    /** Bytes of the longest name of a channel. */
    private const LONGEST = 164;

    /**
     * @param string $key `key` of `[pusher.NAME]`
     * @param string $secret `secret` of it
     * @param ?string $encryptionKey 32 bytes that the server does not know, for `private-encrypted-` channels
     *
     * @throws \ValueError if one of them is empty, or the last has another length
     */
    public function __construct(
        public readonly string $key,
        #[\SensitiveParameter] private readonly string $secret,
        #[\SensitiveParameter] private readonly ?string $encryptionKey = null,
    ) {
        if ($key === '' || $secret === '') {
            $which = $key === '' ? 'key' : 'secret';
            throw new \ValueError("The $which of [pusher.NAME] is empty: PHP sees no variable of the server's environment that [env] does not name");
        }
        if ($encryptionKey !== null && strlen($encryptionKey) !== 32) {
            throw new \ValueError('The key for encrypted channels has 32 bytes, not ' . strlen($encryptionKey));
        }
    }

    /**
     * For a private channel.
     *
     * @return array<string, string> JSON of it is the answer to the client
     *
     * @throws \ValueError if they are no names of a connection and a channel: clients may send anything
     */
    public function channel(string $socketId, string $channel): array
    {
        $answer = ['auth' => $this->sign(self::checked($socketId, $channel))];
        if (self::isEncrypted($channel)) {
            $answer['shared_secret'] = base64_encode($this->sharedSecret($channel));
        }

        return $answer;
    }

    /**
     * For a presence channel: the others are told who the member is.
     *
     * @param string|int $id of the user, in at most 128 bytes; all connections with it are one member
     * @param mixed $info what the others are told, as JSON in at most 1 KB
     *
     * @return array<string, string>
     *
     * @throws \ValueError as above
     * @throws \JsonException if $info cannot be JSON
     */
    public function member(string $socketId, string $channel, string|int $id, mixed $info = null): array
    {
        $data = ['user_id' => (string) $id] + ($info === null ? [] : ['user_info' => $info]);
        $json = json_encode($data, JSON_THROW_ON_ERROR);

        return ['auth' => $this->sign(self::checked($socketId, $channel) . ":$json"), 'channel_data' => $json];
    }

    /**
     * Who the user of a connection is (`pusher.signin()`).
     *
     * @param array<string, mixed> $user with an `id`
     *
     * @return array<string, string>
     *
     * @throws \ValueError if there is no id, or no connection
     * @throws \JsonException if it cannot be JSON
     */
    public function user(string $socketId, array $user): array
    {
        if (!isset($user['id'])) {
            throw new \ValueError('A user has an id');
        }
        $json = json_encode(['id' => (string) $user['id']] + $user, JSON_THROW_ON_ERROR);

        return ['auth' => $this->sign(self::socket($socketId) . "::user::$json"), 'user_data' => $json];
    }

    /**
     * The data of an event as it is published on this channel: encrypted, if only subscribers may read it.
     *
     * @throws \JsonException if it cannot be JSON
     */
    public function data(string $channel, mixed $data): string
    {
        $json = json_encode($data, JSON_THROW_ON_ERROR);
        if (!self::isEncrypted($channel)) {
            return $json;
        }
        $nonce = random_bytes(SODIUM_CRYPTO_SECRETBOX_NONCEBYTES);
        $box = sodium_crypto_secretbox($json, $nonce, $this->sharedSecret($channel));

        return json_encode(['nonce' => base64_encode($nonce), 'ciphertext' => base64_encode($box)], JSON_THROW_ON_ERROR);
    }

    /**
     * The query of a request of the HTTP API.
     *
     * @param string $method in upper case
     * @param string $path from the slash
     */
    public function query(string $method, string $path, string $body): string
    {
        $query = "auth_key=$this->key&auth_timestamp=" . time() . '&auth_version=1.0' . ($body === '' ? '' : '&body_md5=' . md5($body));

        return "$query&auth_signature=" . hash_hmac('sha256', "$method\n$path\n$query", $this->secret);
    }

    public static function isEncrypted(string $channel): bool
    {
        return str_starts_with($channel, 'private-encrypted-');
    }

    private function sign(string $text): string
    {
        return "$this->key:" . hash_hmac('sha256', $text, $this->secret);
    }

    private function sharedSecret(string $channel): string
    {
        if ($this->encryptionKey === null) {
            throw new \LogicException("$channel is encrypted: that needs a key of 32 bytes");
        }

        return hash('sha256', $channel . $this->encryptionKey, true);
    }

    /** A colon in one of them would be a signature for another channel. */
    private static function checked(string $socketId, string $channel): string
    {
        if (strlen($channel) > self::LONGEST || preg_match('/^[-\w=@,.;]+$/D', $channel) !== 1) {
            throw new \ValueError('This is no name of a channel: ' . json_encode(substr($channel, 0, 64), JSON_INVALID_UTF8_SUBSTITUTE));
        }

        return self::socket($socketId) . ":$channel";
    }

    private static function socket(string $socketId): string
    {
        if (preg_match('/^\d{1,20}\.\d{1,20}$/D', $socketId) !== 1) {
            throw new \ValueError('This is no connection: ' . json_encode(substr($socketId, 0, 64), JSON_INVALID_UTF8_SUBSTITUTE));
        }

        return $socketId;
    }
}
