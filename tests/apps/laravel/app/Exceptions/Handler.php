<?php

declare(strict_types=1);

namespace App\Exceptions;

use Illuminate\Foundation\Exceptions\Handler as ExceptionHandler;

final class Handler extends ExceptionHandler
{
    /** Some exceptions it does not make a response of. */
    public function render($request, \Throwable $e)
    {
        if ($request->is('escape')) {
            throw $e;
        }

        return parent::render($request, $e);
    }
}
