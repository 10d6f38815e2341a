@extends('base')
@section('body')
<ul>@foreach ($notes as $note)<li>{{ Illuminate\Support\Facades\Auth::user()->name }}: {{ $note->text }}</li>@endforeach</ul>
<form method="post">@csrf <input name="text"></form>
@endsection
