/* WebSockets whose handler is an object: between two events none of them has a fiber. */
#ifndef SURUS_APP_CONVERSATION_H
#define SURUS_APP_CONVERSATION_H

#include "base.h"

extern const zend_function_entry surus_conversation_functions[];

/* Deals with what has happened to the WebSocket of this request; false if that is not what this fiber is for. */
bool surus_conversation_turn(surus_task *task);

/* Its code has called exit(), which ends it as it ends a loop. */
void surus_conversation_exits(surus_task *task);

/* The fiber of such a request ends: what the next one needs is kept. False: there is none, or this was the last one, so that
 * nothing sees its request any more. May run destructors. */
bool surus_conversation_rest(surus_task *task);

/* Forgets those of an isolate that ends. */
void surus_conversations_free(surus_isolate *isolate);

#endif
