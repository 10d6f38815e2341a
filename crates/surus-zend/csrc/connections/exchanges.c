/* Exchanges on connections whose protocol only the application knows: PHP's streams and the sockets of ext/sockets. A
 * request that has written waits for an answer, unless the peer has never sent anything: then it is like a log, to
 * which other requests may write. If one of them reads an answer all the same, none gets it, and the peer is recorded
 * as one that answers. A request that has read only a part of the input has not ended its exchange. Datagram and
 * listening sockets, socket pairs and pipes may be used by all requests. */
#include "connections/exchanges.h"
#include "connections/handle_kinds.h"

#include "main/php_network.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define STILL_TO_COME "an exchange whose answer is still to come"
#define NOT_READ "an exchange whose answer is not read to its end"

/* The first field of ext/sockets' struct. */
static int descriptor_of_socket(const void *handle)
{
	const zend_object *object = handle;
	return *(const int *)((const char *)object - object->handlers->offset);
}

/* For streams that are not sockets the cast might call PHP code. */
int surus_descriptor_of_stream(php_stream *stream)
{
	php_socket_t descriptor = -1;
	bool is_socket = strstr(stream->ops->label, "_socket") && stream->ops->cast;
	if (!is_socket || stream->ops->cast(stream, PHP_STREAM_AS_FD_FOR_SELECT, (void **)&descriptor) != SUCCESS) {
		return -1;
	}
	return descriptor;
}

/* With TLS the socket may have input that is not an answer. */
static bool is_encrypted(php_stream *stream)
{
	zval about;
	array_init(&about);
	(void)php_stream_populate_meta_data(stream, &about);
	bool is = zend_hash_str_exists(Z_ARRVAL(about), "crypto", sizeof "crypto" - 1);
	zval_ptr_dtor(&about);
	return is;
}

/* Linux's tcp_info up to tcpi_bytes_received; libc's ends before that. */
typedef struct {
	unsigned char before[104];
	uint64_t pacing_rate, max_pacing_rate, bytes_acked, bytes_received;
} tcp_counters;

/* Whether the peer has ever sent anything. */
static bool has_spoken(int descriptor)
{
	tcp_counters counters = {0};
	socklen_t size = sizeof counters;
	int error = errno;
	bool counts = getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &counters, &size) == 0 && size == sizeof counters;
	errno = error;
	return !counts || counters.bytes_received > 0; /* Unix sockets do not count */
}

/* Peers that are known to answer, by a hash of their addresses; a new one replaces the oldest. */
static zend_ulong answering[64];
static size_t next_answering;

static zend_ulong peer_of(int descriptor)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof address;
	int error = errno;
	bool is_there = getpeername(descriptor, (struct sockaddr *)&address, &size) == 0;
	errno = error;
	return is_there ? zend_hash_func((const char *)&address, MIN(size, sizeof address)) : 0;
}

static bool is_known_to_answer(int descriptor)
{
	zend_ulong peer = peer_of(descriptor);
	for (size_t i = 0; peer && i < sizeof answering / sizeof *answering; i++) {
		if (answering[i] == peer) {
			return true;
		}
	}
	return false;
}

static void note_answering(int descriptor)
{
	if (descriptor >= 0 && surus_rs_is_conversation(descriptor) && !is_known_to_answer(descriptor)) {
		answering[next_answering] = peer_of(descriptor);
		next_answering = (next_answering + 1) % (sizeof answering / sizeof *answering);
	}
}

static void close_mixed(int descriptor)
{
	note_answering(descriptor);
	surus_rs_sever(descriptor);
}

static bool has_input(int descriptor)
{
	char byte;
	int error = errno;
	bool has = recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
	errno = error;
	return has;
}

static const char *begun(int descriptor, bool asked, bool buffered, bool encrypted)
{
	if (descriptor < 0 || !surus_rs_is_conversation(descriptor)) {
		return NULL;
	}
	if (asked) {
		return has_spoken(descriptor) || is_known_to_answer(descriptor) ? STILL_TO_COME : NULL;
	}
	return buffered || (!encrypted && has_input(descriptor)) ? NOT_READ : NULL;
}

const char *surus_stream_open(const surus_use *use, surus_step now)
{
	php_stream *stream = (php_stream *)use->handle;
	(void)now;
	return begun(surus_descriptor_of_stream(stream), use->phase == SURUS_ASKED, stream->readpos != stream->writepos, is_encrypted(stream));
}

const char *surus_socket_open(const surus_use *use, surus_step now)
{
	(void)now;
	return begun(descriptor_of_socket(use->handle), use->phase == SURUS_ASKED, false, false);
}

bool surus_socket_is_of_all(const void *handle)
{
	return !surus_rs_is_conversation(descriptor_of_socket(handle));
}

/* A request tries to read: from now on, writing to this peer counts as waiting for an answer. */
void surus_stream_close(const void *handle)
{
	php_stream *stream = (php_stream *)handle;
	close_mixed(surus_descriptor_of_stream(stream));
	stream->readpos = stream->writepos = 0;
}

void surus_socket_close(const void *handle)
{
	close_mixed(descriptor_of_socket(handle));
}

/* The request that has written tries to read, and has not got an answer yet. */
void surus_stream_wants(const void *handle)
{
	note_answering(surus_descriptor_of_stream((php_stream *)handle));
}

void surus_socket_wants(const void *handle)
{
	note_answering(descriptor_of_socket(handle));
}

/* Whether an answer may still come, even if the peer has never answered. */
static bool is_to_come(int descriptor, surus_phase phase)
{
	return phase == SURUS_ASKED && descriptor >= 0 && surus_rs_is_conversation(descriptor);
}

/* For a persistent stream the row of an open exchange stays, for the next request that gets it
 * (connections/persistent_stream.c). */
bool surus_stream_leave(surus_use *use, surus_phase phase, bool broken_off)
{
	const zend_resource *resource = zend_hash_index_find_ptr(&EG(regular_list), use->number);
	bool is_there = resource && resource->ptr == use->handle;
	use->phase = phase;
	if (is_there && broken_off && surus_stream_open(use, SURUS_READS)) {
		php_stream *stream = (php_stream *)use->handle;
		surus_rs_sever(surus_descriptor_of_stream(stream));
		stream->readpos = stream->writepos = 0;
	} else if (is_there && broken_off) {
		use->is_mixed |= is_to_come(surus_descriptor_of_stream((php_stream *)use->handle), phase);
	}
	/* The next request that gets a persistent one may write to it, but not read. */
	use->is_mixed |= use->is_kept && phase == SURUS_ASKED && is_there && is_to_come(surus_descriptor_of_stream((php_stream *)use->handle), phase);
	return use->is_mixed || (use->is_kept && phase == SURUS_ASKED);
}

bool surus_socket_leave(surus_use *use, surus_phase phase, bool broken_off)
{
	use->phase = phase;
	if (broken_off && surus_socket_open(use, SURUS_READS)) {
		surus_rs_sever(descriptor_of_socket(use->handle));
	} else if (broken_off) {
		use->is_mixed |= is_to_come(descriptor_of_socket(use->handle), phase);
	}
	return use->is_mixed;
}
