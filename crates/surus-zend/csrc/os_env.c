/* Environments: a part of the state of the operating system, see os_state.c, which says when. Each is an array of its own,
 * and its entries are its own or the server's. Other threads may be reading: they find the array as it was or as it is,
 * each of them whole, and what is taken out is freed by env_readers.c.
 *
 * The functions below stand before libc's for every library in the process (the executable exports them). */
#include "os_state.h"
#include "internal.h"

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

/* What the server's environment has is shared: nothing changes it. */
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

static void drop_entry(char *entry)
{
	if (!is_servers(entry)) {
		surus_env_retire(entry);
	}
}

void surus_os_env_free(char **env)
{
	if (env && environ == env) {
		set_environ(server_env);
	}
	for (size_t i = 0; env && env[i]; i++) {
		drop_entry(env[i]);
	}
	if (env) {
		surus_env_retire(env);
	}
}

/* With entries of its own from now on. */
static char **own_env(char ***env)
{
	if (!*env) {
		*env = surus_os_env_copy(environ);
		if (*env) {
			set_environ(*env);
		}
	}
	return *env;
}

static size_t find_env(char **env, const char *name, size_t length)
{
	size_t i = 0;
	while (env[i] && !(strncmp(env[i], name, length) == 0 && env[i][length] == '=')) {
		i++;
	}
	return i;
}

/* Takes over `entry` ("NAME=value"). */
static int put_env(char ***own, char *entry, size_t name_length)
{
	char **env = own_env(own);
	if (!env || !entry) {
		free(entry);
		errno = ENOMEM;
		return -1;
	}
	size_t at = find_env(env, entry, name_length);
	if (env[at]) {
		char *old = env[at];
		__atomic_store_n(&env[at], entry, __ATOMIC_SEQ_CST);
		drop_entry(old);
		return 0;
	}
	char **grown = calloc(at + 2, sizeof *env);
	if (!grown) {
		free(entry);
		errno = ENOMEM;
		return -1;
	}
	memcpy(grown, env, at * sizeof *env);
	grown[at] = entry;
	set_environ(grown);
	*own = grown;
	surus_env_retire(env);
	return 0;
}

int unsetenv(const char *name)
{
	char ***own = surus_os_changing_env();
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
		do {
			__atomic_store_n(&env[at], env[at + 1], __ATOMIC_SEQ_CST);
		} while (env[at++]);
		drop_entry(old);
	}
	return 0;
}

int putenv(char *entry)
{
	char ***own = surus_os_changing_env();
	if (!own) {
		return SURUS_REAL(putenv)(entry);
	}
	const char *equals = strchr(entry, '=');
	return equals ? put_env(own, strdup(entry), (size_t)(equals - entry)) : unsetenv(entry);
}

int setenv(const char *name, const char *value, int overwrite)
{
	char ***own = surus_os_changing_env();
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
