/* Environments: a part of the operating system state, which os/state.c switches. Each is a separate array; its entries
 * are its own or shared with the server's. Other threads may be reading: they see the old or the new array, each
 * complete, and os/env_readers.c frees what is removed.
 *
 * The functions below replace libc's for every library in the process (the executable exports them). */
#include "os/env.h"
#include "os/env_readers.h"
#include "os/state.h"

#include "ext/standard/basic_functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static char **server_env;

void surus_os_env_start(void)
{
	server_env = environ;
}

static void set_environ(char **env)
{
	__atomic_store_n(&environ, env, __ATOMIC_SEQ_CST);
}

/* Isolates that have not changed their environment follow: they use `server_env`. */
void surus_environment_set(char **entries)
{
	server_env = entries;
	set_environ(entries);
}

bool surus_os_env_switch(char **to)
{
	char **env = to ? to : server_env;
	if (env == environ) {
		return false;
	}
	set_environ(env);
	return true;
}

static bool is_servers(const char *entry)
{
	for (char **at = server_env; at && *at; at++) {
		if (*at == entry) {
			return true;
		}
	}
	return false;
}

/* Entries of the server's environment are shared: they never change. */
char **surus_os_env_copy(char **source)
{
	size_t count = 0;
	while (source && source[count]) {
		count++;
	}
	char **copy = calloc(count + 1, sizeof *copy);
	for (size_t i = 0; copy && i < count; i++) {
		copy[i] = is_servers(source[i]) ? source[i] : strdup(source[i]);
	}
	return copy;
}

static size_t find_env(char **env, const char *name, size_t length)
{
	size_t i = 0;
	while (env && env[i] && !(strncmp(env[i], name, length) == 0 && env[i][length] == '=')) {
		i++;
	}
	return i;
}

static void take_out(char **list, size_t at)
{
	do {
		__atomic_store_n(&list[at], list[at + 1], __ATOMIC_SEQ_CST);
	} while (list[at++]);
}

static void drop_kept(surus_os_env *env)
{
	for (size_t i = 0; env->kept && env->kept[i]; i++) {
		surus_env_retire(env->kept[i]);
	}
	free(env->kept);
	env->kept = NULL;
}

/* PHP's putenv() keeps a pointer to the entry that it replaces, and restores it when the name is set again or the
 * request ends; the table `putenv_ht` has the names. So the first removed entry of each name in the table must not be
 * freed. */
static void drop_entry(surus_os_env *env, char *entry)
{
	if (is_servers(entry)) {
		return;
	}
	if (zend_hash_num_elements(&BG(putenv_ht)) == 0) {
		drop_kept(env);
	}
	size_t length = strcspn(entry, "=");
	size_t at = find_env(env->kept, entry, length);
	if (env->kept && env->kept[at]) {
		if (zend_hash_str_exists(&BG(putenv_ht), entry, length)) {
			surus_env_retire(entry);
		} else {
			surus_env_retire(env->kept[at]);
			env->kept[at] = entry;
		}
		return;
	}
	char **grown = realloc(env->kept, (at + 2) * sizeof *grown);
	if (grown) {
		grown[at] = entry;
		grown[at + 1] = NULL;
		env->kept = grown;
	} /* else it is lost rather than freed too early */
}

/* An entry that PHP restores is the removed one itself, or one of the environment from which this one was copied. */
static char *put_back(surus_os_env *env, char *entry)
{
	for (size_t i = 0; env->kept && env->kept[i]; i++) {
		if (env->kept[i] == entry) {
			take_out(env->kept, i);
			return entry;
		}
	}
	return is_servers(entry) ? entry : strdup(entry);
}

void surus_os_env_free(surus_os_env *env)
{
	if (env->entries && environ == env->entries) {
		set_environ(server_env);
	}
	for (size_t i = 0; env->entries && env->entries[i]; i++) {
		if (!is_servers(env->entries[i])) {
			surus_env_retire(env->entries[i]);
		}
	}
	if (env->entries) {
		surus_env_retire(env->entries);
	}
	env->entries = NULL;
	drop_kept(env);
}

/* The entries of `env`; the first call copies them from the current environment. */
static char **own_env(surus_os_env *env)
{
	if (!env->entries) {
		env->entries = surus_os_env_copy(environ);
		if (env->entries) {
			set_environ(env->entries);
		}
	}
	return env->entries;
}

/* Takes over `entry` ("NAME=value"). */
static int put_env(surus_os_env *own, char *entry, size_t name_length)
{
	char **env = own_env(own);
	if (!env || !entry) {
		errno = ENOMEM;
		return -1;
	}
	size_t at = find_env(env, entry, name_length);
	if (env[at]) {
		char *old = env[at];
		if (old != entry) {
			__atomic_store_n(&env[at], entry, __ATOMIC_SEQ_CST);
			drop_entry(own, old);
		}
		return 0;
	}
	char **grown = calloc(at + 2, sizeof *env);
	if (!grown) {
		errno = ENOMEM; /* and the entry is lost */
		return -1;
	}
	memcpy(grown, env, at * sizeof *env);
	grown[at] = entry;
	set_environ(grown);
	own->entries = grown;
	surus_env_retire(env);
	return 0;
}

int unsetenv(const char *name)
{
	surus_os_env *own = surus_os_changing_env();
	if (!own) {
		return SURUS_REAL(unsetenv)(name);
	}
	size_t length = strlen(name);
	if (length == 0 || strchr(name, '=')) {
		errno = EINVAL;
		return -1;
	}
	char **env = own_env(own);
	if (!env) {
		errno = ENOMEM;
		return -1;
	}
	size_t at = find_env(env, name, length);
	if (env[at]) {
		char *old = env[at];
		take_out(env, at);
		drop_entry(own, old);
	}
	return 0;
}

int putenv(char *entry)
{
	surus_os_env *own = surus_os_changing_env();
	if (!own) {
		return SURUS_REAL(putenv)(entry);
	}
	const char *equals = strchr(entry, '=');
	return equals ? put_env(own, put_back(own, entry), (size_t)(equals - entry)) : unsetenv(entry);
}

int setenv(const char *name, const char *value, int overwrite)
{
	surus_os_env *own = surus_os_changing_env();
	if (!own) {
		return SURUS_REAL(setenv)(name, value, overwrite);
	}
	size_t length = strlen(name);
	if (length == 0 || strchr(name, '=')) {
		errno = EINVAL;
		return -1;
	}
	char **env = own_env(own);
	if (env && !overwrite && env[find_env(env, name, length)]) {
		return 0;
	}
	size_t size = length + strlen(value) + 2;
	char *entry = malloc(size);
	if (entry) {
		snprintf(entry, size, "%s=%s", name, value);
	}
	return put_env(own, entry, length);
}
