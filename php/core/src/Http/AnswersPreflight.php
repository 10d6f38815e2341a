<?php

declare(strict_types=1);

namespace Surus\Http;

/** A middleware that answers CORS preflight requests: OPTIONS, sent by browsers before another request. */
interface AnswersPreflight
{
    /** @param list<string> $methods of the routes at this path; "*" is every method */
    public function preflight(Request $request, array $methods): Response;
}
