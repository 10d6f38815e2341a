/* What may not be part of a snapshot: what no request could put back. */
#ifndef SURUS_SNAPSHOT_REFUSALS_H
#define SURUS_SNAPSHOT_REFUSALS_H

#include "base.h"

/* Whether the boot that has ended can be kept. Else the log has a line for each thing that forbids it. */
bool surus_can_be_kept(void);

#endif
