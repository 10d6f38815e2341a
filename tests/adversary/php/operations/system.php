<?php

/** Sessions, locks and pipes. */

declare(strict_types=1);

function sessionTalk(Exchange $exchange, string $handler, string $path): void
{
    ini_set('session.save_handler', $handler);
    ini_set('session.save_path', $path);
    ini_set('session.use_cookies', '0');
    ini_set('session.cache_limiter', '');
    session_id(preg_replace('/[^a-z0-9]/', '0', $exchange->token));
    expect(session_start(), 'session_start');
    $_SESSION['word'] = $exchange->word();
    $exchange->step();
    expect(session_write_close(), 'session_write_close');
    $_SESSION = [];
    usleep($exchange->delay * 1000);
    expect(session_start(), 'session_start');
    $word = $_SESSION['word'] ?? null;
    session_destroy();
    $exchange->hear($word);
}

return [
    'session_files' => static fn (Exchange $exchange) => sessionTalk($exchange, 'files', sys_get_temp_dir()),
    'session_redis' => static function (Exchange $exchange): void {
        sessionTalk($exchange, 'redis', 'tcp://127.0.0.1:' . port('REDIS'));
    },
    // Few sessions for all: what is done within one is done by one request at a time.
    'session_lock' => static function (Exchange $exchange): void {
        ini_set('session.save_path', sys_get_temp_dir());
        ini_set('session.use_cookies', '0');
        ini_set('session.cache_limiter', '');
        $id = 'adversary' . crc32($exchange->token) % 3;
        session_id($id);
        expect(session_start(), 'session_start');
        $file = sys_get_temp_dir() . "/{$id}.word";
        $word = $exchange->word();
        file_put_contents($file, $word);
        $_SESSION['word'] = $word;
        usleep($exchange->delay * 100);
        $heard = file_get_contents($file);
        expect(session_write_close(), 'session_write_close');
        $exchange->hear($heard);
    },
    'flock' => static function (Exchange $exchange): void {
        $file = expect(fopen(sys_get_temp_dir() . '/adversary.lock', 'c+'), 'fopen');
        expect(flock($file, LOCK_EX), 'flock');
        $word = $exchange->word();
        ftruncate($file, 0);
        rewind($file);
        fwrite($file, $word);
        fflush($file);
        usleep(500);
        rewind($file);
        $heard = fread($file, 100);
        flock($file, LOCK_UN);
        $exchange->hear($heard);
    },
    'pipes' => static function (Exchange $exchange): void {
        $command = ['sh', '-c', "while read -r line; do sleep {$exchange->seconds()}; echo \"\$line\"; done"];
        $process = expect(proc_open($command, [['pipe', 'r'], ['pipe', 'w']], $pipes), 'proc_open');
        for ($i = 0; $i < 2; $i++) {
            fwrite($pipes[0], $exchange->word() . "\n");
            $exchange->hear(trim(expect(fgets($pipes[1]), 'fgets')));
        }
        fclose($pipes[0]);
        fclose($pipes[1]);
        proc_close($process);
    },
    // What a neighbour may do all day: fail, wait a little, and change errno.
    'noise' => static function (Exchange $exchange): void {
        $end = microtime(true) + $exchange->delay / 1000;
        do {
            @file_get_contents('/nonexistent/' . $exchange->token);
            @fsockopen('127.0.0.1', 1, $code, $message, 0.1);
            usleep(100);
            @ini_set('precision', (string) random_int(10, 17));
            json_decode('{');
            preg_match('/(?:\D+|<\d+>)*[!?]/', 'foobar foobar foobar');
        } while (microtime(true) < $end);
        $exchange->hear($exchange->word());
    },
];
