#ifndef SURUS_OS_ENV_H
#define SURUS_OS_ENV_H

#include "base.h"

/* A part of the state. */
typedef struct {
	char **entries; /* NULL: the server's */
	char **kept;    /* taken out, one of a name, for as long as PHP may put it back; ends with NULL, or is NULL */
} surus_os_env;

void surus_os_env_start(void);
char **surus_os_env_copy(char **source);
/* The server's takes its place if it is the process's. */
void surus_os_env_free(surus_os_env *env);
/* False if the process has it already. */
bool surus_os_env_switch(char **to);

#endif
