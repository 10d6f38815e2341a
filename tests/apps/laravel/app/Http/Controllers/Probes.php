<?php

declare(strict_types=1);

namespace App\Http\Controllers;

use App\Visits;
use Carbon\Carbon;
use Illuminate\Http\JsonResponse;
use Illuminate\Http\Request;
use Illuminate\Routing\Controller;
use Illuminate\Support\Facades\App;
use Illuminate\Support\Facades\Auth;
use Illuminate\Support\Facades\Cache;
use Illuminate\Support\Facades\Cookie;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\URL;
use Illuminate\Support\Facades\View;

/** What tests ask. */
final class Probes extends Controller
{
    public function __construct(private readonly Visits $visits, private readonly Request $request)
    {
    }

    /** Who is logged in, before and after a wait in the database. */
    public function who(string $seen): JsonResponse
    {
        $this->visits->noted[] = $seen;
        $before = Auth::user()?->name;
        $said = DB::selectOne('SELECT ? AS said FROM pg_sleep(0.02)', [$seen])->said;

        return new JsonResponse([
            'before' => $before,
            'after' => request()->user()?->name,
            'said' => $said,
            'query' => $this->request->query('q'),
            'helper' => request('q'),
            'global' => $_GET['q'] ?? null,
            'session' => session('seen', 'none'),
            'path' => app('path.of.boot')(),
            'noted' => $this->visits->noted,
        ]);
    }

    /** The store `surus`: which request of the server this is. */
    public function shared(): JsonResponse
    {
        $cache = Cache::store('shared');
        $cache->add('visits', 0, 60);
        $lock = bin2hex(random_bytes(8));

        return new JsonResponse([
            'visits' => $cache->increment('visits'),
            'locked' => $cache->lock($lock, 10)->get(fn (): bool => !$cache->lock($lock, 10)->get()),
        ]);
    }

    /** @return list<string> what requests of somebody have written after their responses */
    public function seen(string $by): array
    {
        return DB::table('laravel_visits')->where('owner', $by)->orderBy('id')->pluck('what')->all();
    }

    /** Changes whatever a request can. */
    public function change(): string
    {
        $this->visits->noted[] = 'change';
        App::setLocale('de');
        App::instance('changed', true);
        config(['app.greeting' => 'changed']);
        Cache::put('changed', true);
        Cookie::queue('changed', 'yes');
        session(['seen' => 'changed']);
        URL::forceRootUrl('http://changed.example');
        View::share('site', 'changed');

        return 'changed';
    }

    /** @return array<string, mixed> what is left of that */
    public function count(): array
    {
        gc_collect_cycles();

        return [
            'served' => ++Visits::$served,
            'noted' => count($this->visits->noted),
            'memory' => memory_get_usage(),
            'transaction' => DB::transactionLevel(),
            'locale' => App::getLocale() . ' ' . Carbon::getLocale(),
            'bound' => App::bound('changed'),
            'greeting' => config('app.greeting'),
            'cached' => Cache::get('changed'),
            'session' => session('seen', 'none'),
            'url' => parse_url(url('/x'), PHP_URL_HOST),
            'site' => trim(view('site')->render()),
            'env' => env('APP_GREETING'),
        ];
    }

    public function wait(): string
    {
        DB::select('SELECT pg_sleep(1)');

        return 'waited';
    }

    public function leave(): never
    {
        $this->visits->noted[] = 'never written';
        exit('left');
    }

    /** Leaves a transaction open. */
    public function open(): string
    {
        DB::beginTransaction();
        DB::table('laravel_visits')->insert(['owner' => 'open', 'what' => 'uncommitted']);

        return 'open';
    }

    public function fail(): never
    {
        throw new \RuntimeException('it fails');
    }

    /** The database ends the connection behind its back. */
    public function cut(): never
    {
        DB::beginTransaction();
        DB::select('SELECT pg_terminate_backend(pg_backend_pid())');
        exit('not reached');
    }
}
