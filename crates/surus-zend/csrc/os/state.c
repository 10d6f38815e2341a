/* State that the operating system keeps per process and that each PHP request needs for itself: working directory,
 * umask, locale, environment. Each isolate has one state; a fiber gets its own when it first changes something. Before
 * a task runs, the process is switched to its state, only where it differs. The environment is in os/env.c, the state
 * of libintl and syslog in os/text.c.
 *
 * The functions below replace libc's for every library in the process (the executable exports them).
 */
#include "os/state.h"
#include "os/env.h"
#include "os/text.h"
#include "task/running.h"
#include "task/state.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct surus_os_state {
	char *cwd;      /* NULL: the directory the server was started in */
	bool cwd_moved; /* `cwd` is out of date: ask the kernel on leave */
	int umask;      /* -1: the server's */
	char *locale;   /* NULL: the server's */
	surus_os_env env;
	struct surus_os_text *text;
};

static struct surus_os_state *current;
static char *server_cwd;
static char *process_cwd; /* what the kernel has, as getcwd() names it; NULL unknown */
static int server_umask = -1;
static int process_umask = -1;
static char *server_locale; /* as PHP leaves it after startup */
static char *process_locale; /* NULL: the server's */

static int real_chdir(const char *path)
{
	static __typeof__(&chdir) real;
	if (!real) {
		real = SURUS_REAL(chdir);
	}
	return real(path);
}

static mode_t real_umask(mode_t mask)
{
	static __typeof__(&umask) real;
	if (!real) {
		real = SURUS_REAL(umask);
	}
	return real(mask);
}

static char *real_setlocale(int category, const char *locale)
{
	static __typeof__(&setlocale) real;
	if (!real) {
		real = SURUS_REAL(setlocale);
	}
	return real(category, locale);
}

static void remember_server(void)
{
	if (server_umask == -1) {
		server_cwd = getcwd(NULL, 0);
		process_cwd = server_cwd ? strdup(server_cwd) : NULL;
		server_umask = (int)real_umask(0);
		real_umask((mode_t)server_umask);
		process_umask = server_umask;
		surus_os_env_start();
		const char *locale = real_setlocale(LC_ALL, NULL);
		server_locale = strdup(locale ? locale : "C");
	}
}

struct surus_os_state *surus_os_state_new(void)
{
	remember_server();
	struct surus_os_state *state = calloc(1, sizeof *state);
	if (state) {
		state->umask = -1;
	}
	return state;
}

struct surus_os_state *surus_os_state_copy(const struct surus_os_state *source)
{
	struct surus_os_state *copy = surus_os_state_new();
	if (copy) {
		copy->cwd = source->cwd ? strdup(source->cwd) : NULL;
		copy->cwd_moved = source->cwd_moved;
		copy->umask = source->umask;
		copy->locale = source->locale ? strdup(source->locale) : NULL;
		copy->env.entries = source->env.entries ? surus_os_env_copy(source->env.entries) : NULL;
		copy->text = surus_os_text_copy(source->text);
	}
	return copy;
}

void surus_os_state_free(struct surus_os_state *state)
{
	if (!state) {
		return;
	}
	if (current == state) {
		current = NULL;
		surus_os_text_switch(state->text, NULL);
		free(process_cwd);
		process_cwd = NULL;
	}
	free(state->cwd);
	free(state->locale);
	surus_os_env_free(&state->env);
	surus_os_text_free(state->text);
	free(state);
}

static void settle(void)
{
	if (current && current->cwd_moved) {
		free(process_cwd);
		process_cwd = getcwd(NULL, 0);
		free(current->cwd);
		current->cwd = process_cwd ? strdup(process_cwd) : NULL;
		current->cwd_moved = false;
	}
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

void surus_os_enter(struct surus_os_state *state)
{
	if (current == state) {
		return;
	}
	settle();
	surus_os_text_switch(current ? current->text : NULL, state->text);
	current = state;
	const char *cwd = state->cwd ? state->cwd : server_cwd;
	if (cwd && !same(cwd, process_cwd) && real_chdir(cwd) == 0) {
		free(process_cwd);
		process_cwd = strdup(cwd);
	}
	int mask = state->umask == -1 ? server_umask : state->umask;
	if (mask != process_umask) {
		real_umask((mode_t)mask);
		process_umask = mask;
	}
	if (!same(state->locale, process_locale)) {
		real_setlocale(LC_ALL, state->locale ? state->locale : server_locale);
		free(process_locale);
		process_locale = state->locale ? strdup(state->locale) : NULL;
	}
	if (surus_os_env_switch(state->env.entries)) {
		tzset();
	}
}

struct surus_os_text **surus_os_own_text(struct surus_os_state *state)
{
	return &state->text;
}

const struct surus_os_text *surus_os_current_text(void)
{
	return current ? current->text : NULL;
}

void surus_os_forget_text(struct surus_os_state *state)
{
	if (state->text) {
		surus_os_text_switch(state->text, NULL);
		surus_os_text_free(state->text);
		state->text = NULL;
	}
}

struct surus_os_state *surus_task_own_os_state(void)
{
	surus_task *task = surus_request_of(surus_running);
	if (!task->fiber) {
		return task->isolate->os;
	}
	if (!task->own_os) {
		task->own_os = surus_os_fork(task->isolate->os);
	}
	return task->own_os;
}

/* The state that PHP code is about to change, or NULL when the server itself does. */
static struct surus_os_state *changing(void)
{
	if (!surus_running) {
		return NULL;
	}
	return surus_task_own_os_state();
}

surus_os_env *surus_os_changing_env(void)
{
	struct surus_os_state *state = changing();
	return state ? &state->env : NULL;
}

struct surus_os_state *surus_os_fork(struct surus_os_state *from)
{
	settle();
	struct surus_os_state *own = surus_os_state_copy(from);
	if (own && current == from) {
		current = own;
		surus_os_env_switch(own->env.entries);
	}
	return own;
}

int chdir(const char *path)
{
	struct surus_os_state *state = changing();
	int result = real_chdir(path);
	if (result == 0 && state) {
		state->cwd_moved = true;
	}
	return result;
}

int fchdir(int fd)
{
	static __typeof__(&fchdir) real;
	if (!real) {
		real = SURUS_REAL(fchdir);
	}
	struct surus_os_state *state = changing();
	int result = real(fd);
	if (result == 0 && state) {
		state->cwd_moved = true;
	}
	return result;
}

mode_t umask(mode_t mask)
{
	struct surus_os_state *state = changing();
	mode_t old = real_umask(mask);
	if (state) {
		process_umask = (int)mask & 0777;
		state->umask = process_umask == server_umask ? -1 : process_umask;
	}
	return old;
}

char *setlocale(int category, const char *locale)
{
	struct surus_os_state *state = locale ? changing() : NULL;
	char *result = real_setlocale(category, locale);
	if (result && state) {
		char *all = real_setlocale(LC_ALL, NULL);
		free(state->locale);
		free(process_locale);
		bool plain = !all || strcmp(all, server_locale) == 0;
		state->locale = plain ? NULL : strdup(all);
		process_locale = plain ? NULL : strdup(all);
		/* `all` and `result` share libc's buffer. */
		result = real_setlocale(category, NULL);
	}
	return result;
}
