<?php

declare(strict_types=1);

namespace App\Providers;

use App\Models\Note;
use App\Models\User;
use App\Visits;
use Illuminate\Support\Facades\Gate;
use Illuminate\Support\Facades\View;
use Illuminate\Support\ServiceProvider;

final class AppServiceProvider extends ServiceProvider
{
    public function register(): void
    {
        $this->app->singleton(Visits::class);
        // Of the application that has booted, whichever request asks.
        $this->app->singleton('path.of.boot', fn () => fn (): string => $this->app['request']->path());
    }

    public function boot(): void
    {
        Gate::define('read', static fn (User $user, Note $note): bool => $note->user_id === $user->id);
        View::share('site', config('app.name'));
    }
}
