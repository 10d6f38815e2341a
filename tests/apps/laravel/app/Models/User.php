<?php

declare(strict_types=1);

namespace App\Models;

use Illuminate\Database\Eloquent\Relations\HasMany;
use Illuminate\Foundation\Auth\User as Authenticatable;

final class User extends Authenticatable
{
    public $timestamps = false;

    protected $table = 'laravel_users';

    public function notes(): HasMany
    {
        return $this->hasMany(Note::class);
    }
}
