/* State of libintl and syslog: the current message domain, the folder and encoding of each domain, and the arguments of
 * openlog(). A part of the operating system state, which os/state.c switches. Most requests have none of it; then
 * nothing is called here.
 *
 * The functions below replace libc's for every library in the process (the executable exports them). */
#include "os/text.h"
#include "os/state.h"
#include "task/running.h"

#include <libintl.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

typedef struct {
	char *domain;
	char *folder;   /* NULL: the default */
	char *encoding; /* NULL: the locale's */
} binding;

struct surus_os_text {
	char *domain; /* NULL: the default */
	binding *bindings;
	size_t count;
	bool log_open;
	char *log_name; /* libc keeps the pointer */
	int log_option, log_facility;
};

static const char *default_folder(void)
{
	static char *folder;
	if (!folder) {
		const char *known = SURUS_REAL(bindtextdomain)("surus-never-bound", NULL);
		folder = strdup(known ? known : "/usr/share/locale");
	}
	return folder;
}

static char *copy_or_null(const char *text)
{
	return text ? strdup(text) : NULL;
}

struct surus_os_text *surus_os_text_copy(const struct surus_os_text *source)
{
	struct surus_os_text *copy = source ? calloc(1, sizeof *copy) : NULL;
	if (!copy) {
		return NULL;
	}
	copy->domain = copy_or_null(source->domain);
	copy->bindings = calloc(source->count, sizeof *copy->bindings);
	for (size_t i = 0; copy->bindings && i < source->count; i++) {
		const binding *from = &source->bindings[i];
		copy->bindings[copy->count++] = (binding){
			copy_or_null(from->domain), copy_or_null(from->folder), copy_or_null(from->encoding)
		};
	}
	copy->log_open = source->log_open;
	copy->log_name = copy_or_null(source->log_name);
	copy->log_option = source->log_option;
	copy->log_facility = source->log_facility;
	return copy;
}

void surus_os_text_free(struct surus_os_text *text)
{
	if (!text) {
		return;
	}
	for (size_t i = 0; i < text->count; i++) {
		free(text->bindings[i].domain);
		free(text->bindings[i].folder);
		free(text->bindings[i].encoding);
	}
	free(text->bindings);
	free(text->domain);
	free(text->log_name);
	free(text);
}

static void apply(const binding *one)
{
	SURUS_REAL(bindtextdomain)(one->domain, one->folder ? one->folder : default_folder());
	if (one->encoding) {
		SURUS_REAL(bind_textdomain_codeset)(one->domain, one->encoding);
	}
}

/* Also clears the name: libc would keep a pointer to the last one. */
static void close_log(void)
{
	SURUS_REAL(closelog)();
	SURUS_REAL(openlog)(NULL, 0, LOG_USER);
}

void surus_os_text_switch(const struct surus_os_text *from, const struct surus_os_text *to)
{
	if (from == to) {
		return;
	}
	for (size_t i = 0; from && i < from->count; i++) {
		/* An encoding cannot be unset; without one, texts are in the locale's encoding. */
		apply(&(binding){from->bindings[i].domain, NULL, from->bindings[i].encoding ? "UTF-8" : NULL});
	}
	for (size_t i = 0; to && i < to->count; i++) {
		apply(&to->bindings[i]);
	}
	if ((from && from->domain) || (to && to->domain)) {
		SURUS_REAL(textdomain)(to && to->domain ? to->domain : "");
	}
	if (to && to->log_open) {
		SURUS_REAL(openlog)(to->log_name, to->log_option, to->log_facility);
	} else if (from && from->log_open) {
		close_log();
	}
}

/* The state that the running request may change; NULL when the server itself changes it, or memory is short. */
static struct surus_os_text *changing(void)
{
	struct surus_os_text **own = surus_running ? surus_os_own_text(surus_task_own_os_state()) : NULL;
	if (own && !*own) {
		*own = calloc(1, sizeof **own);
	}
	return own ? *own : NULL;
}

static binding *binding_of(struct surus_os_text *text, const char *domain)
{
	for (size_t i = 0; i < text->count; i++) {
		if (strcmp(text->bindings[i].domain, domain) == 0) {
			return &text->bindings[i];
		}
	}
	binding *grown = realloc(text->bindings, (text->count + 1) * sizeof *grown);
	char *name = grown ? strdup(domain) : NULL;
	if (grown) {
		text->bindings = grown;
	}
	if (!name) {
		return NULL;
	}
	grown[text->count] = (binding){.domain = name};
	return &grown[text->count++];
}

static void replace(char **place, const char *value)
{
	free(*place);
	*place = copy_or_null(value);
}

char *textdomain(const char *domain)
{
	char *result = SURUS_REAL(textdomain)(domain);
	struct surus_os_text *text = domain && result ? changing() : NULL;
	if (text) {
		replace(&text->domain, result);
	}
	return result;
}

char *bindtextdomain(const char *domain, const char *folder)
{
	char *result = SURUS_REAL(bindtextdomain)(domain, folder);
	struct surus_os_text *text = folder && result ? changing() : NULL;
	binding *one = text ? binding_of(text, domain) : NULL;
	if (one) {
		replace(&one->folder, result);
	}
	return result;
}

char *bind_textdomain_codeset(const char *domain, const char *encoding)
{
	char *result = SURUS_REAL(bind_textdomain_codeset)(domain, encoding);
	struct surus_os_text *text = encoding && result ? changing() : NULL;
	binding *one = text ? binding_of(text, domain) : NULL;
	if (one) {
		replace(&one->encoding, result);
	}
	return result;
}

void openlog(const char *name, int option, int facility)
{
	struct surus_os_text *text = changing();
	if (text) {
		/* Copy first: libc must never have a pointer to freed memory. */
		char *copy = copy_or_null(name);
		SURUS_REAL(openlog)(copy, option, facility);
		free(text->log_name);
		text->log_name = copy;
		text->log_open = true;
		text->log_option = option;
		text->log_facility = facility;
		return;
	}
	SURUS_REAL(openlog)(name, option, facility);
}

/* PHP calls this at the end of each request, whether the log was opened or not. */
void closelog(void)
{
	if (!surus_running) {
		SURUS_REAL(closelog)();
		return;
	}
	const struct surus_os_text *known = surus_os_current_text();
	struct surus_os_text *text = known && known->log_open ? changing() : NULL;
	if (text) {
		close_log();
		replace(&text->log_name, NULL);
		text->log_open = false;
	}
}
