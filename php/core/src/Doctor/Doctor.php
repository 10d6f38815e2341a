<?php

declare(strict_types=1);

namespace Surus\Doctor;

use Surus\App;
use Surus\BootError;
use Surus\Testing\Client;

/**
 * Looks for what requests of an application leave to each other in coroutine mode: sends requests of different clients,
 * each with an identity of its own in everything that a client sends, and looks for these in what requests share.
 *
 * @internal for `surus doctor`
 */
final class Doctor
{
    private const NOTHING_FOUND = 0;
    private const FOUND = 1;
    private const WRONG_USAGE = 2;

    /** The maximum number of routes that are tried if no requests are given. */
    private const ROUTES = 200;

    /** @var array<string, string> which request an identity is of, and where in the request it was */
    private array $identities = [];

    /** @var array<string, Finding> by place */
    private array $findings = [];

    /** @var array<string, list<string>> what a place had after each request that changed it */
    private array $changes = [];

    /** @param list<string> $requests "GET /path"; none: each GET route of the application */
    public function __construct(private readonly string $script, private array $requests)
    {
    }

    public function run(): int
    {
        foreach ($this->requests as $request) {
            if (preg_match('~^[A-Z]+ /\S*$~', $request) !== 1) {
                fwrite(STDERR, "surus: \"$request\" is not a request: write it as \"GET /path\"\n");

                return self::WRONG_USAGE;
            }
        }
        try {
            $app = (static fn (string $script): mixed => require $script)($this->script);
            if (!$app instanceof App) {
                fwrite(STDERR, "surus: $this->script returns no Surus\\App: surus doctor examines applications for coroutine mode\n");

                return self::WRONG_USAGE;
            }
            $client = Client::of($app);
        } catch (BootError $error) {
            fwrite(STDERR, "surus: {$error->getMessage()}\n");

            return self::FOUND;
        }
        $left = 0;
        if ($this->requests === []) {
            [$this->requests, $left] = self::routes($app);
        }
        $statuses = $this->examine($app);
        (new Report(Root::relative($this->script), $statuses, $left, array_values($this->strongest())))->print();

        return $this->hasFaults() ? self::FOUND : self::NOTHING_FOUND;
    }

    /** @return array<string, int> the status of each request */
    private function examine(App $app): array
    {
        $statuses = [];
        $before = null;
        // The first round fills caches. Who comes first is looked for in all rounds: `self::$user ??= …` keeps them for ever.
        for ($round = 0; $round < 3; $round++) {
            foreach ($this->requests as $request) {
                $statuses[$request] = $this->send($app, $request);
                gc_collect_cycles();
                $state = SharedState::of($app);
                $this->compare($request, $before, $state, $round);
                $before = $state;
            }
        }

        return $statuses;
    }

    private function send(App $app, string $request): int
    {
        [$method, $target] = explode(' ', $request, 2);
        $identity = fn (string $where): string => $this->identity("$where of $request");
        $target .= (str_contains($target, '?') ? '&' : '?') . 'doctor=' . $identity('the query');
        $headers = [
            'Authorization' => 'Bearer ' . $identity('the Authorization header'),
            'Cookie' => 'doctor=' . $identity('a cookie'),
            'User-Agent' => $identity('the User-Agent header'),
            'X-Doctor' => $identity('a header'),
        ];
        $form = in_array($method, ['GET', 'HEAD'], true) ? null : ['doctor' => $identity('the form')];

        // A client for each request: each is somebody else, without the cookies of another one.
        return Client::of($app)->request($method, $target, $headers, form: $form)->status;
    }

    private function identity(string $where): string
    {
        $identity = 'doctor' . bin2hex(random_bytes(8));
        $this->identities[$identity] = $where;

        return $identity;
    }

    private function compare(string $request, ?SharedState $before, SharedState $after, int $round): void
    {
        $old = $before?->places() ?? [];
        foreach ($after->places() as $name => $place) {
            $connection = $place->connection();
            if ($connection !== null) {
                $this->findings[$name] ??= new Finding(Kind::Connection, $place, "$connection is kept here, for all requests");
            }
            $holds = $this->heldBy($place);
            if ($holds !== null) {
                $this->findings[$name] ??= new Finding(Kind::Leak, $place, "holds $holds after the request has ended");
            }
            if ($round > 0 && (!isset($old[$name]) || $old[$name]->fingerprint() !== $place->fingerprint())) {
                $this->changes[$name][] = $place->summary();
                $this->findings[$name] ??= new Finding(Kind::Change, $place, "was changed by $request");
            }
        }
        foreach ($this->changes as $name => $summaries) {
            if (count($summaries) > 1 && self::grows($summaries) && $this->findings[$name]->kind === Kind::Change) {
                $this->findings[$name] = new Finding(Kind::Growth, $this->findings[$name]->place, 'grows: ' . implode(', ', array_slice($summaries, -3)));
            }
        }
    }

    private function heldBy(Place $place): ?string
    {
        foreach ($this->identities as $identity => $where) {
            if ($place->holds($identity)) {
                return $where;
            }
        }

        return null;
    }

    /** @param list<string> $summaries */
    private static function grows(array $summaries): bool
    {
        $last = -1;
        foreach ($summaries as $summary) {
            if (sscanf($summary, 'array of %d', $count) !== 1 || $count <= $last) {
                return false;
            }
            $last = $count;
        }

        return true;
    }

    /**
     * One finding of a kind for each place that is declared somewhere, and no weaker one.
     *
     * @return array<string, Finding>
     */
    private function strongest(): array
    {
        $findings = [];
        foreach (Kind::cases() as $kind) {
            foreach ($this->findings as $finding) {
                $root = $finding->place->root;
                $key = "$root->name $root->file:$root->line";
                if ($finding->kind === $kind) {
                    $findings[$key] ??= $finding;
                }
            }
        }

        return $findings;
    }

    private function hasFaults(): bool
    {
        foreach ($this->findings as $finding) {
            if ($finding->kind->isFault()) {
                return true;
            }
        }

        return false;
    }

    /** @return array{list<string>, int} requests, and how many routes were left out */
    private static function routes(App $app): array
    {
        $requests = [];
        $left = 0;
        foreach ($app->declared() as $route) {
            $template = $route->pattern->template();
            if (array_intersect($route->methods, ['GET', '*']) === [] || str_contains($template, '{') || count($requests) === self::ROUTES) {
                $left++;
            } else {
                $requests["GET $template"] = true;
            }
        }

        return [array_keys($requests), $left];
    }
}
