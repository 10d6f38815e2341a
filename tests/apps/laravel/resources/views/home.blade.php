@extends('base')
@section('body')
<h1>{{ config('app.greeting') }}</h1><a href="{{ route('login') }}">log in</a>
@endsection
