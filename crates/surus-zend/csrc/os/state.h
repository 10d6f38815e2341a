/* Working directory, umask, locale, environment, message domains and the system's log per isolate and fiber. */
#ifndef SURUS_OS_STATE_H
#define SURUS_OS_STATE_H

#include "base.h"
#include "os/env.h"

#include <dlfcn.h>
#include <stdbool.h>

/* libc's function, which one of ours stands before. */
#define SURUS_REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

struct surus_os_state;

struct surus_os_state *surus_os_state_new(void);
void surus_os_state_free(struct surus_os_state *state);
struct surus_os_state *surus_os_state_copy(const struct surus_os_state *source);
/* Puts the process into `state`, which stays current until the next call. */
void surus_os_enter(struct surus_os_state *state);
/* A copy of the current state that takes its place. */
struct surus_os_state *surus_os_fork(struct surus_os_state *from);
/* The state that the running task may change: a fiber's own is made here. */
struct surus_os_state *surus_task_own_os_state(void);

/* That which PHP code is about to change; NULL when the server itself does. */
surus_os_env *surus_os_changing_env(void);

#endif
