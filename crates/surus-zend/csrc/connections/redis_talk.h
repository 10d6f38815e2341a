#ifndef SURUS_CONNECTIONS_REDIS_TALK_H
#define SURUS_CONNECTIONS_REDIS_TALK_H

/* After the extensions have started. */
void surus_redis_talk_start(void);

#endif
