<?php

/** A case for each request, in coroutine mode. */

declare(strict_types=1);

require __DIR__ . '/cases.php';

// Requests start with what the application sets while it boots.
const ZONE = 'Europe/Berlin';
date_default_timezone_set(ZONE);

use Surus\Http\Request;

return function (Request $request): string {
    in_array('stress.upper', stream_get_filters(), true) || stream_filter_register('stress.upper', Upper::class);
    $case = $request->query('case');
    if (in_array($case, ['park', 'state', 'compute', 'library'], true)) {
        return $request->query('id') . ' ' . answer($case, $_GET['id'], (int) $_GET['us']);
    }
    echo $_REQUEST['id'] . ' ';

    return answer($case, $_GET['id'], (int) $_GET['us']);
};
