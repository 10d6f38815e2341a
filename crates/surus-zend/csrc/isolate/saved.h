/* The regions of an isolate as they once were, to be put back. */
#ifndef SURUS_ISOLATE_SAVED_H
#define SURUS_ISOLATE_SAVED_H

#include "base.h"
#include "pages/pages.h"
#include "task/stack.h"

typedef struct surus_saved surus_saved;

/* Once, before the server changes the environment. */
void surus_saved_start(void);
/* Of the entered isolate. NULL: there is no memory. */
surus_saved *surus_saved_new(void);
void surus_saved_free(surus_saved *saved);
/* `stack` is the one that requests run on. NULL, or why it cannot be. */
const char *surus_saved_take(surus_saved *saved, const surus_pages *pages, const surus_stack *stack);
/* Puts the regions back, but for what outlives a request: persistent connections, caches, lists that settings have
 * allocated. NULL; or, without having put anything back, whose memory has changed in a way that nobody knows to undo, and where in it. */
const char *surus_saved_restore(const surus_saved *saved, size_t *at);

#endif
