<?php

declare(strict_types=1);

namespace Surus\Schema;

/**
 * A rule that needs PHP: an attribute class of the application. It is asked once all other input is valid, and not about
 * defaults; that of a class always.
 *
 * One that needs services is a {@see ServiceRule}.
 *
 * Its name in answers is its class's short name, "uniqueEmail" for `UniqueEmail`.
 */
interface Rule extends AnyRule
{
    /**
     * @param mixed $value of the parameter that has the attribute; the object itself where the class has it
     * @param object $subject the object that the value is a part of
     *
     * @return string|null what is wrong, or null
     */
    public function check(mixed $value, object $subject): ?string;
}
