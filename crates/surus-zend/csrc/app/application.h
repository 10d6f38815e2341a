/* Shared by app/boot.c and app/application.c. */
#ifndef SURUS_APP_APPLICATION_H
#define SURUS_APP_APPLICATION_H

#include "base.h"
#include "http/arguments.h"

#define MAX_ARGUMENTS 16

typedef struct {
	zval value; /* UNDEF: there is none */
	zend_fcall_info_cache cache;
} callable;

struct route {
	callable handler;
	callable pipeline; /* called instead, with the request: middleware around the handler */
	surus_plan *plan;
	const zend_function *function; /* what the handler leads to; NULL if that is not known */
	bool needs_request;
};

/* On the isolate's heap, with everything that it points to. */
struct surus_application {
	zval value;     /* what the script returned */
	struct route *routes;
	size_t count;
	callable errors; /* from an exception and a request to a response */
	zend_class_entry *request_class;
	bool loops; /* the script goes on (app/loop.c); the handler of its only route prints, and what it returns is ignored */
};

/* Makes an application from the value that a script has returned, and takes it over; routes and their input are
 * declared to the exchange. NULL: it is not an application; usually an exception describes the reason. */
struct surus_application *surus_application_make(void *exchange, zval *value, const char *script);
void surus_application_free(struct surus_application *app);

static inline surus_str surus_text_of(const zval *text)
{
	return text && Z_TYPE_P(text) == IS_STRING ? surus_bytes_of(Z_STR_P(text)) : (surus_str){"", 0};
}

/* Prevents that destructors of these objects run. */
void surus_mark_destructed(zend_objects_store *objects);

void surus_application_start(void);
surus_outcome surus_run_call(surus_task *task);
/* Calls the handler of the running request's route with its planned arguments. */
void surus_call_handler(zval *request, zval *result);

/* After a fatal error in a request of a booted isolate, or in one of its jobs. */
void surus_note_fatal(surus_task *task);
/* The function of the frame below a handler, and below a job. */
extern zend_function surus_bottom_function;

#endif
