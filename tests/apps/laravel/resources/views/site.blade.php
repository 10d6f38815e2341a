{{ $site }}
