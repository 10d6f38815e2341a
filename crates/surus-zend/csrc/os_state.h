/* Working directory, umask, locale and environment per isolate and fiber. */
#ifndef SURUS_OS_STATE_H
#define SURUS_OS_STATE_H

struct surus_os_state;

struct surus_os_state *surus_os_state_new(void);
void surus_os_state_free(struct surus_os_state *state);
struct surus_os_state *surus_os_state_copy(const struct surus_os_state *source);
/* Puts the process into `state`, which stays current until the next call. */
void surus_os_enter(struct surus_os_state *state);
/* A copy of the current state that takes its place. */
struct surus_os_state *surus_os_fork(struct surus_os_state *from);
/* The state that the running task may change; task side: fiber_state.c. */
struct surus_os_state *surus_task_own_os_state(void);

#endif
