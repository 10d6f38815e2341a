/* Objects of handlers' arguments, from input that was validated before PHP was entered. */
#ifndef SURUS_HTTP_HYDRATE_H
#define SURUS_HTTP_HYDRATE_H

#include "base.h"
#include "http/hydrator.h"

struct surus_hydrator;

/* How the objects of one argument are built: made at boot. */
typedef struct surus_hydrator surus_hydrator;

/* At boot, of a class that a handler of the route with this number takes as input, from where `source` says (SURUS_FROM_…). NULL:
 * a message is in `error`. */
surus_hydrator *surus_hydrator_make(void *exchange, int64_t route, zend_string *class, int source, char *error, size_t error_size);
/* At boot, once routes are known: what the application has told Surus\Schema\Messages. */
bool surus_take_messages(void *exchange);
/* At boot, of a Surus\App: makes its OpenAPI document if that is what it boots for. */
bool surus_make_openapi(void *exchange, zval *app);
void surus_hydrator_free(surus_hydrator *hydrator);
/* Throws a Surus\Schema\InvalidInput if the request's input is refused. */
bool surus_input_is_refused(void *exchange);
/* What has become of an object of input: it breaks rules written in PHP, which the exchange knows then; or there is none,
 * since an exception was thrown. */
typedef enum { SURUS_HYDRATED, SURUS_HYDRATED_BROKEN, SURUS_HYDRATE_THREW } surus_hydrated;
/* `services` is what finds those of rules, or null. */
surus_hydrated surus_hydrate(const surus_hydrator *hydrator, void *exchange, zval *services, zval *to);

#endif
