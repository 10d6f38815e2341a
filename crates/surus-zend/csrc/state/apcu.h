#ifndef SURUS_STATE_APCU_H
#define SURUS_STATE_APCU_H

/* After PHP has started: scripts find APCu's functions where the extension is not loaded. */
void surus_apcu_start(void);

#endif
