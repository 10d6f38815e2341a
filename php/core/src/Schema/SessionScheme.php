<?php

declare(strict_types=1);

namespace Surus\Schema;

/** Credentials that alone identify no user, like a session's: they count only with a {@see UserOfSession}. */
interface SessionScheme extends SecurityScheme
{
}
