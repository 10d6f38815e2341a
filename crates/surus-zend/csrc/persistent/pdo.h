#ifndef SURUS_PERSISTENT_PDO_H
#define SURUS_PERSISTENT_PDO_H

#include "base.h"

void surus_pdo_start(void);
void surus_pdo_clean(surus_task *task);
/* For any connection of PDO: 1 or 0; -1 if it is not supported for its driver. */
typedef struct _pdo_dbh_t surus_pdo_handle;
int surus_pdo_reset(surus_pdo_handle *handle);
int surus_pdo_is_alive(surus_pdo_handle *handle);

#endif
