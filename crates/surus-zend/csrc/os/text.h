#ifndef SURUS_OS_TEXT_H
#define SURUS_OS_TEXT_H

#include "base.h"

struct surus_os_state;

/* The part of an operating system state for texts; NULL if nothing was set. */
struct surus_os_text;
struct surus_os_text **surus_os_own_text(struct surus_os_state *state);
const struct surus_os_text *surus_os_current_text(void);
/* After a request: the next one that uses `state` begins with the server's settings. */
void surus_os_forget_text(struct surus_os_state *state);
struct surus_os_text *surus_os_text_copy(const struct surus_os_text *source);
void surus_os_text_free(struct surus_os_text *text);
void surus_os_text_switch(const struct surus_os_text *from, const struct surus_os_text *to);

#endif
