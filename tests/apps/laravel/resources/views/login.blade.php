@extends('base')
@section('body')
<form method="post" action="{{ route('login') }}">
    @csrf
    <input name="name" value="{{ old('name') }}">
    <input name="password" type="password">
</form>
@endsection
