<?php

declare(strict_types=1);

namespace App\Http\Controllers;

use Illuminate\Contracts\View\View;
use Illuminate\Http\RedirectResponse;
use Illuminate\Http\Request;
use Illuminate\Routing\Controller;
use Illuminate\Support\Facades\Auth;

final class Login extends Controller
{
    public function form(): View
    {
        return view('login');
    }

    public function logIn(Request $request): RedirectResponse
    {
        if (!Auth::attempt($request->only('name', 'password'))) {
            return back()->withErrors(['name' => 'These credentials do not match.'])->withInput();
        }
        $request->session()->regenerate();

        return redirect()->route('home');
    }
}
