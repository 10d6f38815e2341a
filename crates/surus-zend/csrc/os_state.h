/* Working directory, umask, locale, environment, message domains and the system's log per isolate and fiber. */
#ifndef SURUS_OS_STATE_H
#define SURUS_OS_STATE_H

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

/* os_env.c: a part of the state. */
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
/* os_state.c: that which PHP code is about to change; NULL when the server itself does. */
surus_os_env *surus_os_changing_env(void);

/* env_readers.c: frees what was part of an environment, once no thread can be reading it. */
void surus_env_retire(void *memory);

/* os_text.c: a part of the state; NULL where nothing was set. */
struct surus_os_text;
struct surus_os_text **surus_os_own_text(struct surus_os_state *state);
const struct surus_os_text *surus_os_current_text(void);
/* After a request that had the state: the next one finds the server's. */
void surus_os_forget_text(struct surus_os_state *state);
struct surus_os_text *surus_os_text_copy(const struct surus_os_text *source);
void surus_os_text_free(struct surus_os_text *text);
void surus_os_text_switch(const struct surus_os_text *from, const struct surus_os_text *to);

#endif
