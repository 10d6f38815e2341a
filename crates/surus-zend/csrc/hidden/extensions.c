/* What each extension of Debian's php8.2 packages needs to run in isolates; docs/internals/isolates.md gives the
 * reasons. */
#include "hidden/extensions.h"
#include "hidden/find.h"
#include "hidden/hidden.h"
#include "hidden/probe.h"

#include "Zend/zend_observer.h"

typedef enum {
	SAFE,     /* keeps nothing, or only what the core swaps: its module globals */
	SEGMENT,  /* keeps globals that nothing leads to: all its writable data is swapped */
	PROCESSES /* must have a process of its own */
} verdict;

/* For SEGMENT the data must be small, and none of it may point to memory that is allocated at startup and changed
 * later. */
static const struct {
	const char *name;
	verdict verdict;
	const char *why;
} extensions[] = {
	{"Core", SAFE, NULL},
	{"FFI", SAFE, NULL},
	{"OAuth", SAFE, NULL},
	{"PDO", SAFE, NULL},
	{"PDO_Firebird", PROCESSES, "libfbclient has threads and locks of its own, which nobody has read"},
	{"PDO_ODBC", PROCESSES, "unixODBC may hold a mutex while a driver waits"},
	{"Phar", SAFE, NULL},
	{"Reflection", SAFE, NULL},
	{"SPL", SAFE, NULL},
	{"SimpleXML", SAFE, NULL},
	{"Stomp", SAFE, NULL},
	{"Zend OPcache", SAFE, NULL},
	{"amqp", SAFE, NULL},
	{"apcu", SEGMENT, NULL},
	{"ast", SAFE, NULL},
	{"bcmath", SAFE, NULL},
	{"bz2", SAFE, NULL},
	{"calendar", SAFE, NULL},
	{"ctype", SAFE, NULL},
	{"curl", SAFE, NULL},
	{"date", SAFE, NULL},
	{"dba", SAFE, NULL},
	{"dom", SAFE, NULL},
	{"ds", SEGMENT, NULL},
	{"enchant", SAFE, NULL},
	{"exif", SAFE, NULL},
	{"fileinfo", SAFE, NULL},
	{"filter", SAFE, NULL},
	{"ftp", SAFE, NULL},
	{"gd", SAFE, NULL},
	{"gearman", SAFE, NULL},
	{"gettext", SAFE, NULL},
	{"gmagick", PROCESSES, "nobody has read it"},
	{"gmp", SAFE, NULL},
	{"gnupg", SAFE, NULL},
	{"hash", SAFE, NULL},
	{"http", PROCESSES, "its handle providers are registered once, in the process"},
	{"iconv", SAFE, NULL},
	{"igbinary", SEGMENT, NULL},
	{"imagick", SEGMENT, NULL},
	{"imap", PROCESSES, "c-client cannot be entered twice at a time"},
	{"intl", SAFE, NULL},
	{"json", SAFE, NULL},
	{"ldap", SAFE, NULL},
	{"libvirt", PROCESSES, "libvirt's event thread does not survive a fork"},
	{"libxml", SAFE, NULL},
	{"mailparse", SEGMENT, NULL},
	{"maxminddb", SAFE, NULL},
	{"mbstring", SAFE, NULL},
	{"mcrypt", SAFE, NULL},
	{"memcache", SEGMENT, NULL},
	{"memcached", SAFE, NULL},
	{"mongodb", SAFE, NULL},
	{"msgpack", SEGMENT, NULL},
	{"mysqli", SAFE, NULL},
	{"mysqlnd", SAFE, NULL},
	{"odbc", PROCESSES, "unixODBC may hold a mutex while a driver waits"},
	{"openssl", SAFE, NULL},
	{"pcntl", SAFE, NULL},
	{"pcov", PROCESSES, "it measures a process"},
	{"pcre", SAFE, NULL},
	{"pdo_dblib", SAFE, NULL},
	{"pdo_mysql", SAFE, NULL},
	{"pdo_pgsql", SAFE, NULL},
	{"pdo_sqlite", SAFE, NULL},
	{"pgsql", SAFE, NULL},
	{"pinba", PROCESSES, "it measures a process"},
	{"posix", SAFE, NULL},
	{"ps", PROCESSES, "nobody has read it"},
	{"pspell", SAFE, NULL},
	{"psr", SAFE, NULL},
	{"random", SAFE, NULL},
	{"raphf", PROCESSES, "its handle providers are registered once, in the process"},
	{"readline", SEGMENT, NULL},
	{"redis", SAFE, NULL},
	{"rrd", SAFE, NULL},
	{"session", SAFE, NULL},
	{"shmop", SAFE, NULL},
	{"snmp", PROCESSES, "its output settings belong to net-snmp, which has one set per process"},
	{"soap", SAFE, NULL},
	{"sockets", SAFE, NULL},
	{"sodium", SAFE, NULL},
	{"solr", SEGMENT, NULL},
	{"sqlite3", SAFE, NULL},
	{"ssh2", SAFE, NULL},
	{"standard", SAFE, NULL},
	{"sysvmsg", SAFE, NULL},
	{"sysvsem", SAFE, NULL},
	{"sysvshm", SAFE, NULL},
	{"tideways_xhprof", PROCESSES, "it measures a process"},
	{"tidy", SAFE, NULL},
	{"tokenizer", SAFE, NULL},
	{"uopz", PROCESSES, "it changes functions and classes that all isolates share"},
	{"uploadprogress", SAFE, NULL},
	{"uuid", SAFE, NULL},
	{"xdebug", PROCESSES, "it replaces the executor and has one debugger connection"},
	{"xml", SAFE, NULL},
	{"xmlreader", SAFE, NULL},
	{"xmlrpc", SAFE, NULL},
	{"xmlwriter", SAFE, NULL},
	{"xsl", SAFE, NULL},
	{"yac", SAFE, NULL},
	{"yaml", SAFE, NULL},
	{"zip", SAFE, NULL},
	{"zlib", SAFE, NULL},
	{"zmq", SEGMENT, NULL},
};

#define EXTENSIONS (sizeof extensions / sizeof *extensions)
#define SEGMENT_MAX (64 * 1024) /* bytes; the largest known one is solr's with 16 KB */

static int row_of(const char *name)
{
	for (size_t i = 0; i < EXTENSIONS; i++) {
		if (strcmp(extensions[i].name, name) == 0) {
			return (int)i;
		}
	}
	return -1;
}

/* A module's writable data; false when it has no separate file or no such data. */
static bool data_of(const zend_module_entry *module, char **start, size_t *size)
{
	const void *inside = module->functions ? (const void *)module->functions : (const void *)module->info_func;
	return inside && surus_writable_segment(inside, start, size);
}

bool surus_find_extensions(surus_finder *finder)
{
	zend_module_entry *module;
	ZEND_HASH_MAP_FOREACH_PTR(&module_registry, module) {
		int row = row_of(module->name);
		if (row < 0 || extensions[row].verdict != SEGMENT || module->globals_size) {
			continue; /* from the version on that has module globals they are regions already */
		}
		char *start;
		size_t size;
		if (!data_of(module, &start, &size) || size > SEGMENT_MAX) {
			return surus_not_found(finder, module->name, "its data segment is not found");
		}
		if (!surus_found(finder, extensions[row].name, start, size, SURUS_INIT_IMAGE)) {
			return false;
		}
		/* The state of these two is in use while a callback of the request runs. */
		if (strcmp(module->name, "ds") == 0 || strcmp(module->name, "msgpack") == 0) {
			surus_is_of_request(finder);
		}
	} ZEND_HASH_FOREACH_END();
	return true;
}

static bool is_unread(const zend_module_entry *module)
{
	/* The server's module has no file and is the only other one that is not in the table. */
	return row_of(module->name) < 0 && (module->handle || module->type == MODULE_TEMPORARY);
}

const char *surus_extension_for_processes(unsigned *next, const char **why)
{
	unsigned position = 0;
	zend_module_entry *module;
	ZEND_HASH_MAP_FOREACH_PTR(&module_registry, module) {
		if (position++ < *next) {
			continue;
		}
		*next = position;
		int row = row_of(module->name);
		if (is_unread(module)) {
			*why = "it is not known to be safe";
			return module->name;
		}
		if (row >= 0 && extensions[row].verdict == PROCESSES) {
			*why = extensions[row].why;
			return module->name;
		}
	} ZEND_HASH_FOREACH_END();
	/* Zend keeps the observed frame in a static variable. Of Debian's extensions only tideways_xhprof observes
	 * calls. */
	if (ZEND_OBSERVER_ENABLED && *next <= position) {
		*next = position + 1;
		*why = "it observes function calls";
		return "an observer";
	}
	return NULL;
}

/* Copies of the writable data of extensions that nobody has reviewed. */
typedef struct {
	const zend_module_entry *module;
	char *start;
	size_t size;
	char *copy;
} watched;

static watched *watch_list;
static size_t watch_count;

bool surus_watch_extensions(void)
{
	if (!watch_list) {
		watch_list = calloc(zend_hash_num_elements(&module_registry), sizeof *watch_list);
		zend_module_entry *module;
		ZEND_HASH_MAP_FOREACH_PTR(&module_registry, module) {
			watched *entry = watch_list ? &watch_list[watch_count] : NULL;
			if (entry && is_unread(module) && data_of(module, &entry->start, &entry->size)) {
				entry->module = module;
				entry->copy = malloc(entry->size);
				watch_count += entry->copy != NULL;
			}
		} ZEND_HASH_FOREACH_END();
	}
	for (size_t i = 0; i < watch_count; i++) {
		memcpy(watch_list[i].copy, watch_list[i].start, watch_list[i].size);
	}
	return watch_count > 0;
}

const char *surus_watched_change(void)
{
	for (size_t i = 0; i < watch_count; i++) {
		const watched *entry = &watch_list[i];
		const char *globals = entry->module->globals_ptr, *own = (const char *)entry->module;
		for (size_t at = 0; at < entry->size; at++) {
			const char *byte = entry->start + at;
			if (*byte == entry->copy[at] || (byte >= own && byte < own + sizeof *entry->module)) {
				continue;
			}
			/* Each isolate has its own module globals. */
			if (!globals || byte < globals || byte >= globals + entry->module->globals_size) {
				return entry->module->name;
			}
		}
	}
	return NULL;
}
