/* Answers of PostgreSQL that nobody reads any more.
 *
 * Before a connection is closed, reused or kept, pgsql reads what is left with `while (PQgetResult())`. In the middle
 * of a COPY this never ends, since libpq returns the same result each time; otherwise it takes as long as the server
 * needs. So PQgetResult() is replaced, and what an object leaves is read before pgsql does it, within limits. Beyond
 * these the connection is shut down. */
#include "persistent/libpq.h"
#include "persistent/kept.h"
#include "persistent/pgsql.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

surus_libpq pq;

bool surus_libpq_load(void)
{
	if (pq.loaded) {
		return true;
	}
	void *library = dlopen("libpq.so.5", RTLD_LAZY | RTLD_NOLOAD);
	if (!library) {
		return false;
	}
	bool all = true;
#define FIND(type, name, arguments) all = (pq.name = (type(*) arguments)dlsym(library, #name)) && all;
	LIBPQ_FUNCTIONS(FIND)
#undef FIND
	pq.PQpipelineStatus = (int (*)(const PGconn *))dlsym(library, "PQpipelineStatus");
	pq.PQgssEncInUse = (int (*)(PGconn *))dlsym(library, "PQgssEncInUse");
	pq.PQclosePrepared = (PGresult * (*)(PGconn *, const char *))dlsym(library, "PQclosePrepared");
	return pq.loaded = all;
}

/* On an idle connection no call of libpq waits. */
void surus_libpq_sever(PGconn *connection)
{
	if (pq.PQtransactionStatus(connection) != TRANSACTION_IDLE) {
		surus_libpq_break(connection);
	}
}

void surus_libpq_break(PGconn *connection)
{
	int descriptor = pq.PQsocket(connection);
	if (descriptor < 0) {
		return;
	}
	shutdown(descriptor, SHUT_RDWR);
	char room[16 * 1024];
	while (recv(descriptor, room, sizeof room, MSG_DONTWAIT) > 0) {
	}
	/* Read the end of the stream: with TLS this may need several calls. */
	for (unsigned tries = 0; tries < 8 && pq.PQstatus(connection) == STATUS_OK; tries++) {
		pq.PQconsumeInput(connection);
	}
}

static bool is_copy(const PGresult *result)
{
	int status = pq.PQresultStatus(result);
	return status == RESULT_COPY_IN || status == RESULT_COPY_OUT || status == RESULT_COPY_BOTH;
}

/* Each reads about 16 KB. */
#define MAX_READS 256

static long milliseconds_left(const struct timespec *begun)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return SURUS_PATIENCE_MS - (now.tv_sec - begun->tv_sec) * 1000 - (now.tv_nsec - begun->tv_nsec) / 1000000;
}

bool surus_libpq_receive(PGconn *connection, const struct timespec *begun)
{
	long left = milliseconds_left(begun);
	struct pollfd state = {.fd = pq.PQsocket(connection), .events = POLLIN};
	return left > 0 && poll(&state, 1, (int)left) > 0 && pq.PQconsumeInput(connection);
}

static bool read_rest(PGconn *connection)
{
	struct timespec begun;
	clock_gettime(CLOCK_MONOTONIC, &begun);
	for (unsigned reads = 0; reads < MAX_READS;) {
		if (pq.PQisBusy(connection)) {
			if (!surus_libpq_receive(connection, &begun)) {
				return false;
			}
			reads++;
			continue;
		}
		PGresult *result = pq.PQgetResult(connection);
		if (!result) {
			return true;
		}
		bool copies = is_copy(result);
		pq.PQclear(result);
		if (copies || milliseconds_left(&begun) <= 0) {
			return false;
		}
	}
	return false;
}

void surus_libpq_settle(PGconn *connection)
{
	if (connection && surus_libpq_load() && pq.PQstatus(connection) == STATUS_OK
		&& pq.PQtransactionStatus(connection) == TRANSACTION_ACTIVE && !read_rest(connection)) {
		surus_libpq_sever(connection);
	}
}

/* A caller that gets this number of results in the middle of a COPY is in a loop until there are no more. */
#define MAX_COPIES 100

/* Replaces libpq's function. */
__attribute__((visibility("default"))) PGresult *PQgetResult(PGconn *connection)
{
	static const PGconn *copying;
	static unsigned copies;
	if (!surus_libpq_load()) {
		return NULL;
	}
	PGresult *result = pq.PQgetResult(connection);
	if (!result || !is_copy(result)) {
		if (copying == connection) {
			copying = NULL;
		}
		return result;
	}
	if (copying != connection) {
		copying = connection;
		copies = 0;
	} else if (++copies >= MAX_COPIES) {
		copying = NULL;
		surus_libpq_sever(connection);
	}
	return result;
}

/* Replaces libpq's function. PDO calls it for each request, to learn whether a persistent connection is alive. The event
 * loop tells the same without a system call; but a caller that asks again and again is in a loop, in which the event loop
 * does not run. */
__attribute__((visibility("default"))) int PQconsumeInput(PGconn *connection)
{
	static const PGconn *spared;
	if (!surus_libpq_load()) {
		return 0;
	}
	if (connection != spared && connection && surus_rs_is_quiet(pq.PQsocket(connection))) {
		spared = connection;
		return 1;
	}
	spared = NULL;
	return pq.PQconsumeInput(connection);
}
