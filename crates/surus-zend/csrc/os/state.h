/* Working directory, umask, locale, environment, message domains and the system's log per isolate and fiber. */
#ifndef SURUS_OS_STATE_H
#define SURUS_OS_STATE_H

#include "base.h"
#include "os/env.h"

#include <dlfcn.h>
#include <stdbool.h>

/* libc's function of a name that Surus replaces. */
#define SURUS_REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

struct surus_os_state;

struct surus_os_state *surus_os_state_new(void);
void surus_os_state_free(struct surus_os_state *state);
struct surus_os_state *surus_os_state_copy(const struct surus_os_state *source);
/* Puts the process into `state`, which stays current until the next call. */
void surus_os_enter(struct surus_os_state *state);
/* A copy of `from`, which replaces it if it is current. */
struct surus_os_state *surus_os_fork(struct surus_os_state *from);
/* The state that the running task may change: makes a fiber's own state if it has none. */
struct surus_os_state *surus_task_own_os_state(void);

/* The environment that PHP code is about to change; NULL when the server itself changes it. */
surus_os_env *surus_os_changing_env(void);

#endif
