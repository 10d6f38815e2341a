<?php

declare(strict_types=1);

namespace App;

/** What a request has noted, to be written after its response: a singleton of the container. */
final class Visits
{
    /** Requests for this that the isolate has served. */
    public static int $served = 0;

    /** @var list<string> */
    public array $noted = [];
}
