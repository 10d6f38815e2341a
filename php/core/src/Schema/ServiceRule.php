<?php

declare(strict_types=1);

namespace Surus\Schema;

/**
 * A {@see Rule} that needs services: its method `check()` has parameters for them behind the value and the object that the
 * value is a part of. It returns what is wrong, or null.
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
 * Services are those that a handler of the same request gets.
 */
interface ServiceRule extends AnyRule
{
}
