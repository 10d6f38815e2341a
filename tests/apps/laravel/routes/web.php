<?php

use App\Http\Controllers\Login;
use App\Http\Controllers\Notes;
use App\Http\Controllers\Probes;
use Illuminate\Support\Facades\Route;

Route::view('/', 'home')->name('home');
Route::get('/login', [Login::class, 'form'])->name('login');
Route::post('/login', [Login::class, 'logIn']);
Route::middleware('auth')->group(static function (): void {
    Route::get('/notes', [Notes::class, 'index'])->name('notes');
    Route::post('/notes', [Notes::class, 'store']);
    Route::get('/notes/{note}', [Notes::class, 'show'])->middleware('can:read,note');
});
Route::get('/who/{seen}', [Probes::class, 'who']);
Route::get('/seen/{by}', [Probes::class, 'seen']);
foreach (['change', 'count', 'wait', 'leave', 'open', 'fail', 'cut', 'shared'] as $probe) {
    Route::get("/$probe", [Probes::class, $probe]);
}
Route::get('/escape', [Probes::class, 'fail']);
