<!doctype html>
<title>{{ $site }}</title>
<p id="user">{{ Illuminate\Support\Facades\Auth::user()->name ?? 'nobody' }}</p>
@if (session('saved'))
<p class="saved">{{ session('saved') }}</p>
@endif
@foreach ($errors->all() as $error)
<p class="error">{{ $error }}</p>
@endforeach
@yield('body')
