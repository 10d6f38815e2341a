<?php

declare(strict_types=1);

namespace Surus\Schema;

/**
 * A {@see Rule} that needs services: its method `check()` has parameters for them after the value and the object that
 * contains the value. It returns an error message, or null.
 *
 *     #[Attribute]
 *     final class FreeName implements ServiceRule
 *     {
 *         public function check(mixed $value, object $subject, Users $users): ?string
 *         {
 *             return $users->has($value) ? 'is taken' : null;
 *         }
 *     }
 *
 * It gets the same services as a handler of the request.
 */
interface ServiceRule extends AnyRule
{
}
