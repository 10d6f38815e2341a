<?php

declare(strict_types=1);

namespace App\Http\Controllers;

use App\Models\Note;
use App\Visits;
use Illuminate\Contracts\View\View;
use Illuminate\Http\RedirectResponse;
use Illuminate\Http\Request;
use Illuminate\Routing\Controller;
use Illuminate\Support\Facades\DB;

/** The notes of who is logged in, and a form for another one. */
final class Notes extends Controller
{
    public function __construct(private readonly Visits $visits)
    {
    }

    public function index(Request $request): View
    {
        return view('notes', ['notes' => $request->user()->notes()->orderBy('id')->get()]);
    }

    public function store(Request $request): RedirectResponse
    {
        $fields = $request->validate(['text' => 'required|max:100']);
        DB::select('SELECT pg_sleep(0.02)');
        $note = $request->user()->notes()->create($fields);
        $this->visits->noted[] = "note {$note->text}";

        return redirect()->route('notes')->with('saved', $note->text);
    }

    public function show(Note $note): array
    {
        return $note->only('id', 'text');
    }
}
