#ifndef SURUS_OS_TEXT_H
#define SURUS_OS_TEXT_H

#include "base.h"

struct surus_os_state;

/* A part of the state; NULL where nothing was set. */
struct surus_os_text;
struct surus_os_text **surus_os_own_text(struct surus_os_state *state);
const struct surus_os_text *surus_os_current_text(void);
/* After a request that had the state: the next one finds the server's. */
void surus_os_forget_text(struct surus_os_state *state);
struct surus_os_text *surus_os_text_copy(const struct surus_os_text *source);
void surus_os_text_free(struct surus_os_text *text);
void surus_os_text_switch(const struct surus_os_text *from, const struct surus_os_text *to);

#endif
