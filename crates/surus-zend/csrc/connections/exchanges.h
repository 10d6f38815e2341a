#ifndef SURUS_CONNECTIONS_EXCHANGES_H
#define SURUS_CONNECTIONS_EXCHANGES_H

#include "base.h"
#include "connections/handle_kinds.h"

/* -1 if it is not a socket. */
int surus_descriptor_of_stream(php_stream *stream);
const char *surus_stream_open(const surus_use *use, surus_step now);
const char *surus_socket_open(const surus_use *use, surus_step now);
void surus_stream_close(const void *handle);
void surus_socket_close(const void *handle);
void surus_stream_wants(const void *handle);
void surus_socket_wants(const void *handle);
bool surus_stream_leave(surus_use *use, surus_phase phase, bool broken_off);
bool surus_socket_leave(surus_use *use, surus_phase phase, bool broken_off);
bool surus_socket_is_of_all(const void *handle);

#endif
