<?php

/**
 * What Surus adds to PHP natively; csrc/ implements it: http/request_class.c, http/response_class.c, app/functions.c,
 * app/context.c, app/conversation.c, app/deferred.c, app/internal_functions.c, app/in_process.c, app/jobs.c, app/loop.c, app/offload.c, app/queue.c, app/timers.c, app/websocket.c, connections/in_use.c. Editors and analysers read this file; PHP does not.
 */

namespace Surus {

    /**
     * Development servers (`surus serve --dev`) reload when one of these files changes, as they do for files that were
     * included. Elsewhere it does nothing.
     */
    function watch(string ...$paths): void
    {
    }

    /**
     * Serves one request in worker mode: waits for it, calls the handler, which prints the response, and ends the request.
     * What the handler returns is ignored. Only the script itself calls it, usually as the condition of a loop. The first
     * call is the end of the boot. It returns false when the script should end: after a reload, for example.
     *
     * `frankenphp_handle_request()` is the same function, in worker mode.
     */
    function handle_request(callable $handler): bool
    {
    }

    /**
     * The same as {@see Channels::publish()}, without the position.
     *
     * @param string $channel the name of a channel, 1 to 200 bytes of UTF-8
     * @param string $message at most 64 KiB; without $binary it is UTF-8
     *
     * @throws \ValueError if one of them is something else
     * @throws \Error if no server runs this code, or the history of the channel cannot be written
     */
    function publish(string $channel, string $message, bool $binary = false): void
    {
    }

    /**
     * Starts a task: the callable runs when the code that has started it waits, and while others wait. What it returns or
     * throws is what {@see Task::await()} does. A task ends with the code that has started it: that of the request, or that
     * of another task. At most 1000 tasks of a request run at a time.
     *
     * @template T
     *
     * @param callable(): T $job
     *
     * @throws \Error while an application boots, and after the end of the request or script
     *
     * @return Task<T>
     */
    function async(callable $job): Task
    {
    }

    /**
     * Waits until the task has completed: the same as its method.
     *
     * @template T
     *
     * @param Task<T> $task
     *
     * @throws CancelledException if it was cancelled
     *
     * @return T what its callable has returned
     */
    function await(Task $task): mixed
    {
    }

    /**
     * Runs all of them at the same time, and waits for all. The first that fails ends it: the others are cancelled, waited
     * for, and its exception is thrown. Tasks that were started before are not cancelled.
     *
     * @template K of array-key
     * @template T
     *
     * @param iterable<K, (callable(): T)|Task<T>> $jobs
     * @param int|null $concurrency how many run at a time at most; of a generator, no more are taken before; null for all
     *
     * @throws \ValueError if the concurrency is less than 1
     *
     * @return array<K, T> what they have returned, in the order of the jobs
     */
    function all(\Traversable|array $jobs, ?int $concurrency = null): array
    {
    }

    /**
     * Runs all of them at the same time until one has returned; the others are cancelled and waited for.
     *
     * @template T
     *
     * @param iterable<(callable(): T)|Task<T>> $jobs
     *
     * @throws CompositeException if all have failed
     * @throws \ValueError if there are none
     *
     * @return T what the first one has returned
     */
    function any(\Traversable|array $jobs): mixed
    {
    }

    /**
     * Runs all of them at the same time until one has returned or thrown; the others are cancelled and waited for.
     *
     * @template T
     *
     * @param iterable<(callable(): T)|Task<T>> $jobs
     *
     * @throws \Throwable what the first one has thrown
     * @throws \ValueError if there are none
     *
     * @return T what the first one has returned
     */
    function race(\Traversable|array $jobs): mixed
    {
    }

    /**
     * Calls it in a task, which is cancelled after this time.
     *
     * @template T
     *
     * @param float $seconds from 0 on
     * @param callable(): T $job
     *
     * @throws TimeoutException if it was cancelled, once it has ended
     *
     * @return T what it has returned
     */
    function timeout(float $seconds, callable $job): mixed
    {
    }

    /**
     * Waits. Other tasks and requests run meanwhile, as with sleep().
     *
     * @param float $seconds from 0 on
     */
    function delay(float $seconds): void
    {
    }

    /**
     * Runs the callable after the response has been sent: its client waits for nothing of it, and its session is written. It
     * has what the request has, tasks included; what it prints is dropped. Several run one after another, in this order; what
     * they defer is behind them. They run after exit() too, and after a client that has left; not after a fatal error.
     * An exception is logged. `defer_timeout` bounds them.
     *
     * @throws \Error while an application boots, and after the end of the request or script
     */
    function defer(callable $job): void
    {
    }

    /**
     * Runs a function in another process and waits for its result, while others of this one go on: for code that computes, and
     * for calls that nothing can wait beside, such as SQLite's. Arguments and result are serialized. In `surus php` it
     * runs in place.
     *
     * @param callable $job a function or a public static method, by its name or as `name(...)`: no closure, no method of an object
     * @param mixed ...$arguments for the function, also by name
     *
     * @throws \ValueError if the job cannot run elsewhere
     * @throws \TypeError if an argument cannot be serialized; the message names it
     * @throws OffloadException if the job throws, exits, has a fatal error or a result that cannot be serialized, if its process
     *     dies, and where there are none (`offload_processes`)
     * @throws TimeoutException if it is not done within `offload_timeout`
     * @throws \Error while an application boots, and after the end of the request or script
     *
     * @return mixed what the function has returned
     */
    function offload(callable $job, mixed ...$arguments): mixed
    {
    }

    /**
     * Runs the callable beside the request, and after its end, for as long as it likes: what follows a queue or a socket, say.
     * It belongs to the application (coroutine mode): it has no client, no session and no superglobals of the request, and an exception
     * of it is logged. A reload, a fatal error of the isolate and the end of the worker cancel it: `finally` blocks run, for 5 s
     * at most. 100 of them run at a time, in each worker.
     *
     * @throws \Error where there is no such room, and outside of requests in coroutine mode
     */
    function background(callable $job): void
    {
    }

    /**
     * Runs the callable once in each version of the application: so many seconds after the server has started, and after each reload,
     * in one worker of the server. A worker that is replaced does not run it again. See {@see every()}.
     *
     * @param bool $reloads false: once, so many seconds after the server has started; a version that is loaded later does not run it
     *
     * @throws BootError if the time is none
     * @throws \Error elsewhere than in the script of an application in coroutine mode
     */
    function after(float $seconds, callable $job, bool $reloads = true): void
    {
    }

    /**
     * A timer of the application, declared by its script: runs the callable whenever so many seconds have passed, in one worker
     * of the server, never at the same time as itself. The times are multiples of `$seconds` since 1970 (UTC), so that nothing
     * moves them; those during a run are left out. A run has no client and no time limit; an exception is logged. A reload
     * replaces the timers.
     *
     * @param float $seconds at least 0.01
     *
     * @throws BootError if the time is too short
     * @throws \Error elsewhere than in the script of an application in coroutine mode
     */
    function every(float $seconds, callable $job): void
    {
    }

    /**
     * As {@see every()}, at times of the calendar in the application's time zone: minute, hour, day, month, day of the week, as
     * crontab(5) writes them.
     *
     * @throws BootError that names the field of the expression that is wrong
     * @throws \Error elsewhere than in the script of an application in coroutine mode
     */
    function cron(string $expression, callable $job): void
    {
    }

    /**
     * Jobs of a queue that belong together, one for each payload; others may follow them ({@see Batch}). `push()` adds them.
     *
     * @param iterable<mixed> $payloads what the handler gets; each is serialised
     */
    function batch(string $queue, \Traversable|array $payloads = []): Batch
    {
    }

    /**
     * Adds a job to a queue ({@see Queue::push()}). When it returns, the job is on disk.
     *
     * @param mixed $payload what the handler gets ({@see App::queue()}); it is serialised
     * @param float $delay seconds until it may run
     * @param int $priority the highest is first
     * @param ?string $unique while a job with this key waits or runs, another one is not added
     *
     * @return string the id of the job
     *
     * @throws QueueException if it cannot be kept
     */
    function dispatch(string $queue, mixed $payload = null, float $delay = 0.0, int $priority = 0, ?string $unique = null): string
    {
    }

    /**
     * Two requests, or two tasks of one, use one connection at a time, which would give one of them the other's answer. The
     * message names both, and where each uses it: declare the connection scoped, or use a pool.
     */
    class ConnectionInUse extends \LogicException
    {
    }
}

namespace Surus\Internal {

    /**
     * What is native of {@see \Surus\Http\Request}. Every method of a request that has ended throws an {@see \Error}. It
     * cannot be cloned.
     *
     * @internal
     *
     * @not-serializable
     */
    abstract class NativeRequest
    {
        /** The method as the client sent it: "GET", "POST", … */
        public function method(): string
        {
        }

        /** The target as the client sent it: path and query string. */
        public function uri(): string
        {
        }

        /** The path of the target, not decoded. */
        public function path(): string
        {
        }

        /** What follows the question mark, not decoded; "" without one. */
        public function queryString(): string
        {
        }

        /**
         * A value of the query string, decoded as for $_GET; all of them without a name.
         *
         * @param mixed $default what a name that is not there gives
         *
         * @return ($name is null ? array<array-key, string|array<mixed>> : mixed)
         */
        public function query(?string $name = null, mixed $default = null): mixed
        {
        }

        /**
         * A value of a body of type application/x-www-form-urlencoded, decoded as for $_POST; all of them without a
         * name. Waits for the body.
         *
         * @param mixed $default what a name that is not there gives
         *
         * @throws \Surus\Http\HttpException 400 where the body breaks off
         *
         * @return ($name is null ? array<array-key, string|array<mixed>> : mixed)
         */
        public function form(?string $name = null, mixed $default = null): mixed
        {
        }

        /**
         * The body as JSON; objects become arrays. Waits for the body.
         *
         * @throws \JsonException if it is not JSON
         * @throws \Surus\Http\HttpException 400 where it breaks off
         */
        public function json(): mixed
        {
        }

        /**
         * The whole body. Waits for it; the other requests go on meanwhile.
         *
         * @throws \Surus\Http\HttpException 400 where it breaks off
         */
        public function body(): string
        {
        }

        /**
         * A header by name, in any case. Of several with one name, the first.
         *
         * @param mixed $default what a name that is not there gives
         *
         * @return string|mixed
         */
        public function header(string $name, mixed $default = null): mixed
        {
        }

        /**
         * All headers under lower-case names. The values of several with one name are joined with ", ".
         *
         * @return array<string, string>
         */
        public function headers(): array
        {
        }

        /**
         * A parameter of the matched route's path, decoded: "7" for {id} of /users/{id} and the path /users/7.
         *
         * @param mixed $default what a name that is not there gives
         *
         * @return string|mixed
         */
        public function param(string $name, mixed $default = null): mixed
        {
        }

        /**
         * All parameters of the matched route's path that are there.
         *
         * @return array<string, string>
         */
        public function params(): array
        {
        }

        /**
         * Bytes of the body as they come, waited for; "" at its end.
         *
         * @param int $size how many at most, from 1 to 16 MiB
         *
         * @throws \ValueError for a size out of range
         * @throws \Surus\Http\HttpException 400 where the body breaks off
         */
        public function read(int $size): string
        {
        }

        /**
         * The body as a stream that is read once, as it comes: reading waits while nothing has, and what is not read the
         * client has not sent yet. Where {@see NativeRequest::body()} was called before, what it has read. Reading fails
         * where the body breaks off.
         *
         * @return resource
         */
        public function openBody()
        {
        }

        /**
         * Fields that have followed the body, by lower-case name; none before its end was read.
         *
         * @return array<string, string>
         */
        public function trailers(): array
        {
        }

        /**
         * What $_SERVER has of this request.
         *
         * @return array<string, string>
         */
        public function variables(): array
        {
        }

        /** What $_SERVER has under this name; null if nothing. $_SERVER itself need not be built for it. */
        public function server(string $name): ?string
        {
        }

        /** The client's address; behind a proxy that of the proxy, unless the server's `trusted_proxies` names it. */
        public function ip(): string
        {
        }
    }

    /**
     * What is native of {@see \Surus\Http\Response}. It cannot be cloned or changed.
     *
     * @internal
     *
     * @not-serializable
     */
    abstract class NativeResponse
    {
        /**
         * @param string|iterable<string|\Stringable>|null $body an iterable is streamed: each item leaves at once
         * @param int $status from 100 to 599
         * @param array<string, string|list<string>> $headers by name; a list sends the header several times. Without a
         *     content-type the body is text/html
         * @param array<string, string|\Closure(): string> $trailers fields behind the body
         *
         * @throws \ValueError for a status out of range
         * @throws \TypeError for a body of another type
         */
        public function __construct(mixed $body = null, int $status = 200, array $headers = [], array $trailers = [])
        {
        }

        /** From 100 to 599. */
        public function status(): int
        {
        }

        /** @return string|iterable<string|\Stringable>|null as it was given */
        public function body(): mixed
        {
        }

        /** @return array<string, string|list<string>> as they were given: names in any case */
        public function headers(): array
        {
        }

        /** @return array<string, string|\Closure(): string> */
        public function trailers(): array
        {
        }
    }

    /** An application that a script of the command line talks to. */
    final class InProcess
    {
        /** @throws \Error in a server */
        public function __construct(\Surus\App $app)
        {
        }

        /**
         * Waits for the answer.
         *
         * @param string $head lines "name: value"
         *
         * @return array{int, string, string} status, such lines, body
         */
        public function request(string $method, string $target, string $head, string $body): array
        {
        }
    }

    /** @internal @return int its number */
    function postgres_client(string $connection, int $connections): int
    {
    }

    /**
     * @internal
     *
     * @param array<mixed> $parameters
     * @param int $shape 0: all rows; 1: the first one or null; 2: how many were affected
     * @param ?class-string $class of the rows; null: arrays
     */
    function postgres_query(int $client, int $transaction, string $sql, array $parameters, int $shape, ?string $class = null): mixed
    {
    }

    /**
     * @internal
     *
     * @param array<array<mixed>> $lists
     *
     * @return array<mixed> what postgres_query() returns for each of them, with its key
     */
    function postgres_each(int $client, int $transaction, string $sql, array $lists, int $shape): array
    {
    }

    /** @internal @return int the transaction's number */
    function postgres_begin(int $client, string $sql): int
    {
    }

    /** @internal @return bool false: it was rolled back, though it was to be committed */
    function postgres_end(int $transaction, bool $commit): bool
    {
    }

    /** @internal Closes the connection of a transaction, if that has not ended. */
    function postgres_cut(int $transaction): void
    {
    }

    /** Begins a COPY of a transaction. Returns its number. */
    function postgres_copy(int $transaction, string $sql, bool $toServer): int
    {
    }

    /** Sends a piece; false: the server takes no more, and the end says why. */
    function postgres_copy_put(int $copy, string $piece): bool
    {
    }

    /** The next piece of the server's; null: there are no more, or the end says why not. */
    function postgres_copy_take(int $copy): ?string
    {
    }

    /** Ends a COPY, or undoes it. Returns the number of rows. */
    function postgres_copy_end(int $copy, bool $isGood): int
    {
    }

    /** Listens to a channel. Returns the number of the listener, which ends with the request. */
    function postgres_listen(int $client, string $channel): int
    {
    }

    /**
     * Waits for a notification: its text, the process that has sent it, and whether it says only that some were missed.
     *
     * @return ?array{string, int, bool} null: the code must end
     */
    function postgres_notification(int $listener): ?array
    {
    }

    /** Ends the listener. */
    function postgres_unlisten(int $listener): void
    {
    }

    /** @internal Whether requests of this application can become WebSockets. */
    function has_websockets(): bool
    {
    }

    /** @internal @return string the answer to `Sec-WebSocket-Extensions`; "" if there is none */
    function websocket_extensions(string $offers): string
    {
    }

    /** @internal Answers the request with 101 and the headers so far. The number of its WebSocket. */
    function websocket_accept(int $maxMessage): int
    {
    }

    /** @internal From now on no fiber waits for messages: the object is told what happens. False: it is told already. */
    function websocket_converse(int $number, Conversation $conversation, \Surus\Http\Request $request): bool
    {
    }

    /** @internal @return ?string a message that has come; null: none has */
    function websocket_next(int $number, bool &$binary): ?string
    {
    }

    /** @internal @return string|bool the next message; false: no more will come; true: the time is over */
    function websocket_receive(int $number, ?float $seconds, bool &$binary): string|bool
    {
    }

    /** @internal @return bool false: it is over */
    function websocket_send(int $number, string $message, bool $binary): bool
    {
    }

    /** @internal Does nothing if it is over. */
    function websocket_close(int $number, int $code, string $reason): void
    {
    }

    /** @internal @return int {@see ChannelResult} */
    function channel_publish(string $channel, string $data, bool $binary, string $event, string $except, string &$position): int
    {
    }

    /** @internal @return array<int, array{string, string}>|int names with what they say of themselves; {@see ChannelResult} */
    function channel_members(string $channel): array|int
    {
    }

    /** @internal @return array<int, array{string, string, string, bool}>|int|null position, event, data, whether it is binary */
    function channel_history(string $channel, string $since, int $count, string &$newest): array|int|null
    {
    }

    /** @internal */
    function channel_subscribers(string $channel): int
    {
    }

    /** @internal @return int {@see ChannelResult}; MISSED: it has subscribed */
    function channel_subscribe(int $number, string $channel, bool $wanted, string $since): int
    {
    }

    /** @internal Without a name it leaves. */
    function channel_join(int $number, string $channel, string $member, string $info): int
    {
    }

    /** @internal The response goes on with what is published on this channel. */
    function channel_stream(string $channel, string $since, int $retry): int
    {
    }

    /** @internal @return array{int, string}|null code and reason; null: it is open */
    function websocket_end(int $number): ?array
    {
    }

    /** @internal Begins a task: calls its run() on a stack of its own. The number of the task, which begins at 1. */
    function job_start(\Surus\Task $task): int
    {
    }

    /**
     * @internal Waits until job_wake() is called with the number of the running task, also if it was called before.
     *
     * @param float|null $seconds how long at most
     *
     * @return bool false: the time is over
     */
    function job_wait(?float $seconds = null): bool
    {
    }

    /** @internal Wakes the task with this number; 0 is the request's own code. */
    function job_wake(int $number): void
    {
    }

    /** @internal Cancels the task with this number, if it has not ended. */
    function job_cancel(int $number): void
    {
    }

    /** @internal The number of the running task; 0 is the request's own code. */
    function job_number(): int
    {
    }

    /** @internal The running task; null in the request's own code. */
    function job_task(): ?\Surus\Task
    {
    }

    /** @internal See Surus\defer(). */
    function job_defer(\Closure $job): void
    {
    }

    /** @internal The context of the running code; a new one takes its place. */
    function task_context(?\Surus\Context $new = null): ?\Surus\Context
    {
    }

    /**
     * @internal {@see Internal\Offload}
     *
     * @return array{int, string}
     */
    function offload(string $name, string $payload): array
    {
    }

    /**
     * @internal {@see Internal\Queues}
     *
     * @return array{int, string, string}
     */
    function queue(string $verb, string $head, string $payload = ''): array
    {
    }

    /** @internal The closure runs the jobs of these queues, which are JSON. */
    function queue_serve(string $queues, \Closure $run): void
    {
    }

    /**
     * @internal The job that is to be run: JSON, and its payload.
     *
     * @return array{string, string}
     */
    function queue_job(): array
    {
    }

    /** @internal How it has ended, as JSON. */
    function queue_end(string $ending): void
    {
    }

    /** @internal See Surus\background(). */
    function background_start(\Closure $run): void
    {
    }

    /**
     * @internal Declares a timer: kind 0 once, 1 repeatedly, 2 at that time and when timer_next() says. The closure is called
     *     with whether it is due.
     */
    function timer_add(string $about, int $kind, float $seconds, \Closure $run): void
    {
    }

    /** @internal When the timer that runs is due next, in seconds since 1970. */
    function timer_next(float $at): void
    {
    }

    /** @internal The exception, as if it had been made where the application has called the classes in the binary. */
    function at_caller(\Throwable $exception): \Throwable
    {
    }

    /** Whether a signature is right (RFC 7518, 3); numbers of keys are bytes, the highest first. */
    function verifies(string $algorithm, string $first, string $second, string $text, string $signature): bool
    {
    }

    /** A signature; null if the key, a secret or PKCS #8, cannot make one. */
    function signature(string $algorithm, #[\SensitiveParameter] string $key, string $text): ?string
    {
    }

    /** JSON of a response: as json_encode(), and a DateTimeInterface is a string (RFC 3339). Flags come on top. */
    function json(mixed $value, int $flags = 0): string
    {
    }

    /** What is wrong with a route's pattern; null if nothing is. */
    function pattern_error(string $pattern): ?string
    {
    }

    /** Calls the handler of the running request's route with its planned arguments. */
    function call_handler(NativeRequest $request): mixed
    {
    }

    /** Writes an exception to the server's log. */
    function report(\Throwable $exception): void
    {
    }

    /** Whether the server's log takes lines of this severity (0 to 7, as syslog's). */
    function log_enabled(int $severity): bool
    {
    }

    /**
     * A line for the server's log.
     *
     * @param int $severity 0 to 7, as syslog's
     * @param string $level its name
     * @param string $context a JSON object, or nothing
     */
    function write_log(int $severity, string $level, string $channel, string $message, string $context): void
    {
    }

    /**
     * Takes tokens from a bucket that all workers of the server share.
     *
     * @param float $rate tokens that it gains, a second
     * @param float $burst tokens that it holds
     * @param float $cost tokens to take; none are taken where there are fewer
     *
     * @return array{bool, int, float, float} whether they were there, how many are left, seconds until it would be
     *     allowed, seconds until the bucket is full
     */
    function take_tokens(string $key, float $rate, float $burst, float $cost = 1.0): array
    {
    }

    /**
     * A value of the store that all workers share, if its time is not over.
     *
     * @param int $now nanoseconds, as hrtime() gives them; -1: the present
     */
    function store_get(string $key, mixed $default = null, int $now = -1): mixed
    {
    }

    /**
     * @param int $condition 0: always, 1: if there is none, 2: if there is one, 3: if it is the expected one
     *
     * @return int 0: done, 1: the condition does not hold, 2: too large, 3: full, 4: there is no store, or it is locked
     */
    function store_set(string $key, mixed $value, ?float $seconds = null, int $condition = 0, mixed $expected = null, int $now = -1, bool $kept = false): int
    {
    }

    /** 0: done, 1: there was none, 4: it may still be there. */
    function store_delete(string $key, int $now = -1): int
    {
    }

    /** Removes the values of all keys that begin like this; false if some may still be there. */
    function store_clear(string $prefix): bool
    {
    }

    /** 0: done, 1: there is none, 4: there is no store, or it is locked. */
    function store_touch(string $key, ?float $seconds): int
    {
    }

    /**
     * Adds to a number.
     *
     * @param int $initial to what is added if there is none
     * @param bool $kept it is never removed to make room
     * @param-out int $result the sum
     *
     * @return int as of store_set(), and 5: not a number, 6: the sum is too large
     */
    function store_step(string $key, int $by, int $initial, ?float $seconds, bool $kept, &$result): int
    {
    }

    /**
     * Takes a lock that all requests of the server share.
     *
     * @param-out int $number the taken one's
     *
     * @return int 0: taken, 1: others hold it, 2: the request must end, 3: nothing can wait here, 4: too many, 5: there are none
     */
    function lock_take(string $name, float $seconds, &$number): int
    {
    }

    /** Whether this request held it. */
    function lock_release(int $number): bool
    {
    }

    /** Puts a database connection back to its beginning; false: it cannot be; null: the engine knows no way for its class. */
    function reset_connection(object $connection): ?bool
    {
    }

    /** Options of mysqli, which can only be set: each reset gives them the values that they have now. */
    function note_options(object $connection): void
    {
    }

    /** Whether an idle connection is still open; null where only its server could tell. */
    function is_alive(object $connection): ?bool
    {
    }

    /** Another number for each request that runs at a time; 0 outside of requests. */
    function request_number(): int
    {
    }

    /** A place for one wait. */
    function ticket(): int
    {
    }

    /** Waits at the place until it is called; false: it was not in time; null: nothing can wait here. */
    function wait_for_call(int $ticket, float $seconds): ?bool
    {
    }

    /** Ends the wait at the place, or the one that comes. */
    function call_ticket(int $ticket): void
    {
    }

    /** What a pool has done, for the status; with 0 it is a new one. Returns its number. */
    function note_pool(
        int $number,
        string $name,
        int $max,
        int $idle,
        int $inUse,
        int $waiting,
        int $resets,
        int $dropped,
        int $closed,
    ): int {
    }

    /** The pool is gone. */
    function forget_pool(int $number): void
    {
    }

    /** A header of the running request, in any case; null if there is none. */
    function request_header(string $name): ?string
    {
    }

    /**
     * $_POST and $_FILES of the running request, made of its multipart body whatever its method is. Waits for the body.
     *
     * @return array{array<array-key, mixed>, array<array-key, mixed>}
     */
    function parse_upload(): array
    {
    }
}

namespace Surus\Schema {

    /**
     * An OpenAPI document, as JSON.
     *
     * @internal
     *
     * @param string $routes what is in it: JSON, as RouteDescriber makes it
     *
     * @throws \Error for what cannot be read
     */
    function document(string $routes): string
    {
    }

    /**
     * The page that shows the document.
     *
     * @internal
     */
    function page(): string
    {
    }
}

namespace {

    /** The response is complete and leaves; PHP goes on without a client. False where there is no request. */
    function fastcgi_finish_request(): bool
    {
    }

    /**
     * Sends an interim response (102 to 199) with the headers so far, before the response itself: 103 for early hints.
     * With any other status: the head of the response. 1 if it was sent; 3 if it cannot be now, or if the client would
     * not understand it.
     */
    function headers_send(int $status = 200): int
    {
    }

    /**
     * All request headers under names such as "Content-Type".
     *
     * @return array<string, string>
     */
    function getallheaders(): array
    {
    }

    /**
     * @alias getallheaders
     *
     * @return array<string, string>
     */
    function apache_request_headers(): array
    {
    }

    /**
     * The headers that the response has so far.
     *
     * @return array<string, string>
     */
    function apache_response_headers(): array
    {
    }
}

namespace Surus\Runtime {
    /**
     * @internal runs a file as php-fpm runs a script, in the global scope, with nothing above it, and with `$enters` in its
     * folder. False: it has not come to its end.
     */
    function run_script(string $file, bool $enters): bool
    {
    }
}
