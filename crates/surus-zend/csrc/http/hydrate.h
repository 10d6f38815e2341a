/* Objects for handlers' arguments, from input that was validated before PHP was entered. */
#ifndef SURUS_HTTP_HYDRATE_H
#define SURUS_HTTP_HYDRATE_H

#include "base.h"
#include "http/hydrator.h"

struct surus_hydrator;

/* How the objects of one argument are built: made at boot. */
typedef struct surus_hydrator surus_hydrator;

/* At boot: for a class that the handler of the route with this number takes as input from `source` (SURUS_FROM_…).
 * NULL: a message is in `error`. */
surus_hydrator *surus_hydrator_make(void *exchange, int64_t route, zend_string *class, int source, char *error, size_t error_size);
/* At boot, after the routes are known: takes the messages that the application has given to Surus\Schema\Messages. */
bool surus_take_messages(void *exchange);
/* At boot, for a Surus\App: makes its OpenAPI document if it boots for this. */
bool surus_make_openapi(void *exchange, zval *app);
void surus_hydrator_free(surus_hydrator *hydrator);
/* Throws a Surus\Schema\InvalidInput if the request's input is refused. */
bool surus_input_is_refused(void *exchange);
/* The result of building an object: it was built; it violates rules written in PHP, which the exchange has recorded; or
 * an exception was thrown, and there is no object. */
typedef enum { SURUS_HYDRATED, SURUS_HYDRATED_BROKEN, SURUS_HYDRATE_THREW } surus_hydrated;
/* `services` finds the services of rules, or is null. */
surus_hydrated surus_hydrate(const surus_hydrator *hydrator, void *exchange, zval *services, zval *to);

#endif
