<?php

declare(strict_types=1);

namespace Surus\Schema;

/** Credentials that say nothing by themselves, as a session's: they count where a {@see UserOfSession} looks for somebody in them. */
interface SessionScheme extends SecurityScheme
{
}
