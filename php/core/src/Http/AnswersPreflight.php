<?php

declare(strict_types=1);

namespace Surus\Http;

/** A middleware that answers the OPTIONS request with which a browser asks whether it may send another one. */
interface AnswersPreflight
{
    /** @param list<string> $methods of the routes at this path; "*" is every method */
    public function preflight(Request $request, array $methods): Response;
}
