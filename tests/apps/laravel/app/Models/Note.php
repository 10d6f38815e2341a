<?php

declare(strict_types=1);

namespace App\Models;

use Illuminate\Database\Eloquent\Model;

final class Note extends Model
{
    public $timestamps = false;

    protected $table = 'laravel_notes';

    protected $fillable = ['text'];
}
