/* Functions that act on the process, in a server.
 *
 * All requests share the process: a signal, another user id or a lower limit affects all of them, and later ones. So
 * calls are refused with a warning and false, unless they change nothing. Functions that php-fpm does not have either
 * are removed. On the command line all of them work as usual. */
#include "os/process_functions.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* Whether a call changes nothing for others. */
typedef bool (*harmless)(zend_execute_data *call);

static zend_long argument(zend_execute_data *call, uint32_t number)
{
	return ZEND_CALL_NUM_ARGS(call) >= number ? zval_get_long(ZEND_CALL_ARG(call, number)) : 0;
}

static bool never(zend_execute_data *call)
{
	return false;
}

static bool is_own_user(zend_execute_data *call)
{
	uid_t id = (uid_t)argument(call, 1);
	return id == getuid() && id == geteuid();
}

static bool is_own_group(zend_execute_data *call)
{
	gid_t id = (gid_t)argument(call, 1);
	return id == getgid() && id == getegid();
}

static bool is_zero(zend_execute_data *call)
{
	return argument(call, 1) == 0;
}

static bool is_another(zend_execute_data *call)
{
	pid_t process = (pid_t)argument(call, 1);
	return process != 0 && process != getpid();
}

/* The number after `name` in /proc/PID/status. */
static pid_t status_of(pid_t process, const char *name)
{
	char path[64], line[256];
	pid_t number = 0;
	snprintf(path, sizeof path, "/proc/%d/status", (int)process);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file)) {
		size_t length = strlen(name);
		if (strncmp(line, name, length) == 0 && line[length] == ':') {
			number = (pid_t)atoi(line + length + 1);
			break;
		}
	}
	if (file) {
		fclose(file);
	}
	return number;
}

static bool runs_our_program(pid_t process)
{
	char path[64], own[PATH_MAX], other[PATH_MAX];
	snprintf(path, sizeof path, "/proc/%d/exe", (int)process);
	ssize_t length = readlink("/proc/self/exe", own, sizeof own);
	return length > 0 && readlink(path, other, sizeof other) == length && memcmp(own, other, (size_t)length) == 0;
}

/* The process itself, one of its threads, the master, or one of its other children. */
static bool is_of_server(pid_t process)
{
	if (process == getpid() || process == getppid() || status_of(process, "Tgid") == getpid()) {
		return true;
	}
	return status_of(process, "PPid") == getppid() && runs_our_program(process);
}

static bool is_for_others(zend_execute_data *call)
{
	zend_long target = argument(call, 1);
	if (argument(call, 2) == 0) {
		return true; /* only asks whether it is there */
	}
	if (target == 0 || target == -1 || target < -INT_MAX || target > INT_MAX) {
		return false;
	}
	return target < 0 ? (pid_t)-target != getpgrp() : !is_of_server((pid_t)target);
}

static const struct {
	const char *name;
	harmless is_harmless; /* NULL: not there at all */
	const char *why;
} rules[] = {
	{"chroot", NULL, NULL},
	{"posix_kill", is_for_others, "The signal would reach the server and all of its requests"},
	{"posix_setuid", is_own_user, "A server's user is that of all its requests"},
	{"posix_seteuid", is_own_user, "A server's user is that of all its requests"},
	{"posix_setgid", is_own_group, "A server's group is that of all its requests"},
	{"posix_setegid", is_own_group, "A server's group is that of all its requests"},
	{"posix_initgroups", never, "A server's groups are those of all its requests"},
	{"posix_setsid", never, "A server's session is that of all its requests"},
	{"posix_setpgid", is_another, "A server's process group is that of all its requests"},
	{"posix_setrlimit", never, "The limits of a server's process are those of all its requests"},
	{"proc_nice", is_zero, "The priority of a server's process is that of all its requests"},
};

#define RULES (sizeof rules / sizeof *rules)

/* PHP's handlers, in the order of the rules. */
static zif_handler handlers[RULES];

static ZEND_NAMED_FUNCTION(guarded)
{
	const char *name = ZSTR_VAL(execute_data->func->common.function_name);
	for (size_t i = 0; i < RULES; i++) {
		if (strcmp(rules[i].name, name) != 0) {
			continue;
		}
		/* PHP itself reports missing arguments. */
		if (ZEND_NUM_ARGS() < execute_data->func->common.required_num_args || rules[i].is_harmless(execute_data)) {
			handlers[i](INTERNAL_FUNCTION_PARAM_PASSTHRU);
			return;
		}
		php_error_docref(NULL, E_WARNING, "%s", rules[i].why);
		RETURN_FALSE;
	}
}

static int (*next_register)(void);

/* PHP's library for embedding is built with pcntl, like php-cli and unlike php-fpm. Signals, alarms and fork() are for
 * separate programs, and frameworks check whether pcntl exists. */
static int register_extensions(void)
{
	int result = next_register();
	zend_module_entry *pcntl = zend_hash_str_find_ptr(&module_registry, "pcntl", sizeof "pcntl" - 1);
	if (pcntl && pcntl->functions) {
		zend_unregister_functions(pcntl->functions, -1, NULL);
		zend_hash_str_del(&module_registry, "pcntl", sizeof "pcntl" - 1);
	}
	return result;
}

void surus_process_functions_prepare(void)
{
	next_register = php_register_internal_extensions_func;
	php_register_internal_extensions_func = register_extensions;
}

void surus_process_functions_start(void)
{
	for (size_t i = 0; i < RULES; i++) {
		zend_function *function = zend_hash_str_find_ptr(CG(function_table), rules[i].name, strlen(rules[i].name));
		if (!function || function->type != ZEND_INTERNAL_FUNCTION) {
			continue;
		}
		if (!rules[i].is_harmless) {
			zend_hash_str_del(CG(function_table), rules[i].name, strlen(rules[i].name));
			continue;
		}
		handlers[i] = function->internal_function.handler;
		function->internal_function.handler = guarded;
	}
	/* pcntl as a shared extension of a distribution, loaded by the configuration. */
	zend_module_entry *pcntl = zend_hash_str_find_ptr(&module_registry, "pcntl", sizeof "pcntl" - 1);
	if (pcntl && pcntl->functions) {
		zend_unregister_functions(pcntl->functions, -1, NULL);
	}
}
