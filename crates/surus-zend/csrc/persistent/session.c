/* Resets sessions with PostgreSQL between their users.
 *
 * What a request has changed in its session cannot be told from the text of its statements: any of them may call a function
 * that does, through a view, an operator, a cast, a rule or a policy. So each session is reset, whatever it was asked.
 *
 * The reset is sent when the request has ended, and its answer is read when the next one gets the connection: nobody
 * waits for it in between, and it has mostly arrived by then.
 *
 * DISCARD ALL would also discard the statements that are kept for the next request (prepared.c). Where there are any, and
 * no text of the request has touched what is prepared, the parts of DISCARD ALL except that one are sent, and the server
 * is asked how many statements are prepared. If that is another number than is known here, DISCARD ALL follows. */
#include "persistent/session.h"
#include "persistent/kept.h"
#include "persistent/libpq.h"
#include "persistent/prepared.h"

#include <poll.h>
#include <time.h>

static bool trusts_texts;

void surus_persistent_trust(bool texts)
{
	trusts_texts = texts;
}

#define EVERYTHING "DISCARD ALL"
/* Not RESET ALL alone: it leaves the role. The settings come first, so that the names after them mean PostgreSQL's own. */
#define PARTS "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; DISCARD TEMP; DISCARD SEQUENCES; "
#define CHECK "EXECUTE surus_check"
#define PREPARED_CHECK "PREPARE surus_check AS SELECT pg_catalog.count(*), pg_catalog.pg_advisory_unlock_all() " \
	"FROM pg_catalog.pg_prepared_statement(); "

/* What an idle server says is rare. */
#define LAST_WORDS_MS 20

/* ---- answers ---- */

static bool has_come(PGconn *connection, const struct timespec *begun)
{
	while (pq.PQisBusy(connection)) {
		if (!surus_libpq_receive(connection, begun)) {
			return false;
		}
	}
	return true;
}

static bool is_good(const PGresult *result, long *number)
{
	int status = pq.PQresultStatus(result);
	if (status == RESULT_TUPLES_OK && pq.PQntuples(result) == 1) {
		*number = strtol(pq.PQgetvalue(result, 0, 0), NULL, 10);
	}
	return status == RESULT_COMMAND_OK || status == RESULT_TUPLES_OK;
}

/* Waits for the answer to what was sent. `number` becomes that of its last row. */
static bool is_done(PGconn *connection, long *number)
{
	struct timespec begun;
	bool good = true;
	clock_gettime(CLOCK_MONOTONIC, &begun);
	while (has_come(connection, &begun)) {
		PGresult *result = pq.PQgetResult(connection);
		if (!result) {
			return good && pq.PQstatus(connection) == STATUS_OK && pq.PQtransactionStatus(connection) == TRANSACTION_IDLE;
		}
		good = is_good(result, number) && good;
		pq.PQclear(result);
		if (pq.PQstatus(connection) != STATUS_OK) {
			return false;
		}
	}
	return false;
}

static bool does(PGconn *connection, const char *command)
{
	long number;
	return pq.PQsendQuery(connection, command) && is_done(connection, &number);
}

/* ---- resetting ---- */

/* Without encryption, what is sent can be read. */
static bool is_plain(PGconn *connection)
{
	return !pq.PQsslInUse(connection) && !(pq.PQgssEncInUse && pq.PQgssEncInUse(connection));
}

bool surus_libpq_reset_begin(PGconn *connection)
{
	if (!surus_libpq_load() || pq.PQstatus(connection) != STATUS_OK
		|| (pq.PQpipelineStatus && pq.PQpipelineStatus(connection) != 0)) {
		return false;
	}
	surus_session *session = surus_session_of(connection, true);
	if (!session || session->reset != SURUS_RESET_NONE) {
		return session != NULL;
	}
	pq.PQuntrace(connection);
	pq.PQsetErrorVerbosity(connection, DEFAULT_VERBOSITY);
	pq.PQsetErrorContextVisibility(connection, CONTEXT_OF_ERRORS);
	int transaction = pq.PQtransactionStatus(connection);
	/* An answer that nobody reads is still to come. */
	if (transaction == TRANSACTION_ACTIVE || transaction == TRANSACTION_UNKNOWN || pq.PQsetnonblocking(connection, 0) != 0
		|| (transaction != TRANSACTION_IDLE && !does(connection, "ROLLBACK"))) {
		return false;
	}
	bool only_reads = surus_rs_session_only_reads(pq.PQsocket(connection));
	if (only_reads && trusts_texts) {
		surus_prepared_release(connection);
		return true;
	}
	session->reset = only_reads && surus_prepared_count(connection) > 0 ? SURUS_RESET_PARTS : SURUS_RESET_ALL;
	bool sent;
	if (session->reset == SURUS_RESET_PARTS) {
		surus_prepared_release(connection);
		sent = pq.PQsendQuery(connection, session->has_check ? PARTS CHECK : PARTS PREPARED_CHECK CHECK);
		session->has_check = true;
	} else {
		surus_prepared_forget(connection);
		sent = pq.PQsendQuery(connection, EVERYTHING);
	}
	return sent;
}

static bool complete(PGconn *connection, surus_session *session)
{
	long number = -1;
	bool done = is_done(connection, &number);
	if (session->reset == SURUS_RESET_PARTS && !(done && number == (long)surus_prepared_count(connection) + 1)) {
		surus_prepared_forget(connection);
		done = pq.PQstatus(connection) == STATUS_OK && pq.PQtransactionStatus(connection) == TRANSACTION_IDLE
			&& does(connection, EVERYTHING);
	}
	return done;
}

bool surus_libpq_reset_end(PGconn *connection)
{
	surus_session *session = surus_session_of(connection, false);
	if (!session || session->reset == SURUS_RESET_NONE) {
		return pq.PQstatus(connection) == STATUS_OK;
	}
	bool done = complete(connection, session);
	session->reset = SURUS_RESET_NONE;
	if (done && is_plain(connection)) {
		surus_rs_session_begins(pq.PQsocket(connection));
	}
	/* Drop notifications of channels to which the last user listened. */
	for (PGnotify *told; (told = pq.PQnotifies(connection)); pq.PQfreemem(told)) {
	}
	return done;
}

bool surus_libpq_is_resetting(const PGconn *connection)
{
	const surus_session *session = surus_session_of(connection, false);
	return session && session->reset != SURUS_RESET_NONE;
}

bool surus_libpq_is_alive(PGconn *connection)
{
	if (!surus_libpq_load()) {
		return true;
	}
	if (!surus_libpq_reset_end(connection)) {
		surus_libpq_break(connection);
		return false;
	}
	/* An idle server sends changes of its settings, or a last message, after which the connection is closed: soon, but not at
	 * once. */
	for (unsigned tries = 0; tries < 8 && pq.PQstatus(connection) == STATUS_OK; tries++) {
		int descriptor = pq.PQsocket(connection);
		struct pollfd state = {.fd = descriptor, .events = POLLIN | POLLRDHUP};
		if (!surus_is_readable(descriptor) && (tries == 0 || poll(&state, 1, LAST_WORDS_MS) == 0)) {
			return true;
		}
		pq.PQconsumeInput(connection);
	}
	return false;
}
