<?php

declare(strict_types=1);

namespace Surus\Schema;

/**
 * A rule that needs PHP: an attribute class of the application. It is checked only if all other rules are met, and not
 * for default values; a rule of a class is always checked.
 *
 * A rule that needs services is a {@see ServiceRule}.
 *
 * Its name in responses is its class's short name, "uniqueEmail" for `UniqueEmail`.
 */
interface Rule extends AnyRule
{
    /**
     * @param mixed $value of the parameter with the attribute; the object itself if its class has the attribute
     * @param object $subject the object that contains the value
     *
     * @return string|null the error message, or null
     */
    public function check(mixed $value, object $subject): ?string;
}
