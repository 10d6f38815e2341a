#ifndef SURUS_OS_ENV_H
#define SURUS_OS_ENV_H

#include "base.h"

/* The environment part of an operating system state. */
typedef struct {
	char **entries; /* NULL: the server's */
	char **kept;    /* taken out, one of a name, for as long as PHP may put it back; ends with NULL, or is NULL */
} surus_os_env;

void surus_os_env_start(void);
char **surus_os_env_copy(char **source);
/* If it is the environment of the process, the server's replaces it. */
void surus_os_env_free(surus_os_env *env);
/* False if the process already has this environment. */
bool surus_os_env_switch(char **to);

#endif
