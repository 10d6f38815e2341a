/* Statements that PDO lets PostgreSQL prepare are kept for the next time that a request prepares the same text on the
 * same connection: PDO prepares each anew, executes it, and has the server forget it, which are three exchanges.
 *
 * PDO's names stand for ours, which the server knows. Only statements that read are kept, and only while the session was
 * asked for nothing else since its last reset: whatever may change how a text is understood or what the server has
 * prepared (SET, temporary tables, DEALLOCATE) ends that. A reset of such a session forgets all. */
#include "persistent/prepared.h"
#include "persistent/libpq.h"

#define MAX_STATEMENTS 64
#define MAX_TYPES 16
#define MAX_TEXT 8192
#define PDO_PREFIX "pdo_stmt_"
#define DEALLOCATE "DEALLOCATE " PDO_PREFIX
#define NAME_SIZE 48

typedef struct {
	char *text; /* NULL: unused */
	char name[NAME_SIZE];  /* the server's */
	char alias[NAME_SIZE]; /* PDO's, while a request has it */
	int count;
	pg_type types[MAX_TYPES];
	zend_ulong used;
} statement;

/* Of one connection, until it is closed. */
typedef struct statements {
	struct statements *next;
	const PGconn *connection;
	surus_session session;
	zend_ulong uses;
	statement all[MAX_STATEMENTS];
} statements;

static statements *connections;

static statements *of(const PGconn *connection, bool make)
{
	statements *found = connections;
	while (found && found->connection != connection) {
		found = found->next;
	}
	if (!found && make && (found = calloc(1, sizeof *found))) {
		found->connection = connection;
		found->next = connections;
		connections = found;
	}
	return found;
}

surus_session *surus_session_of(const PGconn *connection, bool make)
{
	statements *known = of(connection, make);
	return known ? &known->session : NULL;
}

size_t surus_prepared_count(const PGconn *connection)
{
	const statements *known = of(connection, false);
	size_t count = 0;
	for (size_t i = 0; known && i < MAX_STATEMENTS; i++) {
		count += known->all[i].text != NULL;
	}
	return count;
}

static void forget(statement *one)
{
	free(one->text);
	one->text = NULL;
	one->alias[0] = '\0';
}

void surus_prepared_release(PGconn *connection)
{
	statements *known = of(connection, false);
	for (size_t i = 0; known && i < MAX_STATEMENTS; i++) {
		known->all[i].alias[0] = '\0';
	}
}

void surus_prepared_forget(PGconn *connection)
{
	statements *known = of(connection, false);
	for (size_t i = 0; known && i < MAX_STATEMENTS; i++) {
		forget(&known->all[i]);
	}
	if (known) {
		known->session.has_check = false;
	}
}

static void end(const PGconn *connection)
{
	surus_prepared_forget((PGconn *)connection);
	for (statements **at = &connections; *at; at = &(*at)->next) {
		if ((*at)->connection == connection) {
			statements *gone = *at;
			*at = gone->next;
			free(gone);
			return;
		}
	}
}

static statement *with_alias(const PGconn *connection, const char *alias)
{
	statements *known = alias && *alias ? of(connection, false) : NULL;
	for (size_t i = 0; known && i < MAX_STATEMENTS; i++) {
		if (known->all[i].text && strcmp(known->all[i].alias, alias) == 0) {
			return &known->all[i];
		}
	}
	return NULL;
}

static bool is_same(const statement *one, const char *text, int count, const pg_type *types)
{
	if (!one->text || one->count != count || strcmp(one->text, text) != 0) {
		return false;
	}
	for (int i = 0; i < count; i++) {
		if (one->types[i] != (types ? types[i] : 0)) {
			return false;
		}
	}
	return true;
}

/* One that is free, or has not been used for the longest time; NULL if the request has all of them. */
static statement *place_in(statements *known)
{
	statement *oldest = NULL;
	for (size_t i = 0; i < MAX_STATEMENTS; i++) {
		statement *one = &known->all[i];
		if (!one->text) {
			return one;
		}
		if (!*one->alias && (!oldest || one->used < oldest->used)) {
			oldest = one;
		}
	}
	return oldest;
}

/* The server forgets a statement. The text is not one that only reads, but leaves nothing. */
static bool drop(PGconn *connection, statement *one)
{
	char command[NAME_SIZE + sizeof "DEALLOCATE "];
	int descriptor = pq.PQsocket(connection);
	bool only_reads = surus_rs_session_only_reads(descriptor);
	snprintf(command, sizeof command, "DEALLOCATE %s", one->name);
	PGresult *result = pq.PQexec(connection, command);
	bool done = pq.PQresultStatus(result) == RESULT_COMMAND_OK;
	pq.PQclear(result);
	forget(one);
	if (done && only_reads) {
		surus_rs_session_begins(descriptor);
	}
	return done;
}

static PGresult *done(PGconn *connection)
{
	return pq.PQmakeEmptyPGresult(connection, RESULT_COMMAND_OK);
}

/* Prepares it under a name of ours; NULL: not kept, and nothing was asked. */
static PGresult *prepare(PGconn *connection, const char *alias, const char *text, int count, const pg_type *types)
{
	static zend_ulong number;
	statements *known = of(connection, true);
	for (size_t i = 0; known && i < MAX_STATEMENTS; i++) {
		statement *one = &known->all[i];
		if (!*one->alias && is_same(one, text, count, types)) {
			strcpy(one->alias, alias);
			one->used = ++known->uses;
			return done(connection);
		}
	}
	statement *one = known ? place_in(known) : NULL;
	char *copy = one ? strdup(text) : NULL;
	if (!copy || (one->text && !drop(connection, one))) {
		free(copy);
		return NULL;
	}
	char name[NAME_SIZE];
	snprintf(name, sizeof name, "%s" ZEND_ULONG_FMT, surus_rs_kept_names(), ++number);
	PGresult *result = pq.PQprepare(connection, name, text, count, types);
	if (pq.PQresultStatus(result) != RESULT_COMMAND_OK) {
		free(copy);
		return result;
	}
	/* The exchange may have parked the request; the connection is its own. */
	*one = (statement){.text = copy, .count = count, .used = ++known->uses};
	strcpy(one->name, name);
	strcpy(one->alias, alias);
	for (int i = 0; i < count; i++) {
		one->types[i] = types ? types[i] : 0;
	}
	return result;
}

/* ---- replacements of libpq's functions ---- */

#define EXPORTED __attribute__((visibility("default")))

EXPORTED PGresult *PQprepare(PGconn *connection, const char *name, const char *text, int count, const pg_type *types)
{
	if (!surus_libpq_load()) {
		return NULL;
	}
	bool is_kept = connection && name && text && count >= 0 && count <= MAX_TYPES && strncmp(name, PDO_PREFIX, sizeof PDO_PREFIX - 1) == 0
		&& strlen(name) < NAME_SIZE && strnlen(text, MAX_TEXT) < MAX_TEXT && surus_rs_text_only_reads(text) && surus_rs_session_only_reads(pq.PQsocket(connection));
	PGresult *result = is_kept ? prepare(connection, name, text, count, types) : NULL;
	return result ? result : pq.PQprepare(connection, name, text, count, types);
}

/* Whether the statement no longer fits: a table has changed since it was prepared, or names mean something else in this
 * session. PDO would have prepared it after that. */
static bool is_outdated(const PGresult *result)
{
	const char *state = result ? pq.PQresultErrorField(result, 'C') : NULL;
	return state && (strcmp(state, "0A000") == 0 || strcmp(state, "26000") == 0 || strncmp(state, "42", 2) == 0);
}

EXPORTED PGresult *PQexecPrepared(PGconn *connection, const char *name, int count, const char *const *values, const int *lengths,
	const int *formats, int format)
{
	if (!surus_libpq_load()) {
		return NULL;
	}
	statement *one = with_alias(connection, name);
	if (!one) {
		return pq.PQexecPrepared(connection, name, count, values, lengths, formats, format);
	}
	PGresult *result = pq.PQexecPrepared(connection, one->name, count, values, lengths, formats, format);
	if (!is_outdated(result)) {
		return result;
	}
	if (pq.PQtransactionStatus(connection) != TRANSACTION_IDLE) {
		/* The transaction has failed. The next request prepares it again. */
		surus_rs_session_ends(pq.PQsocket(connection));
		return result;
	}
	/* With the name and the types that PDO has given. */
	char *text = strdup(one->text);
	statement before = *one;
	drop(connection, one);
	PGresult *again = text ? pq.PQprepare(connection, name, text, before.count, before.types) : NULL;
	free(text);
	if (!again || pq.PQresultStatus(again) != RESULT_COMMAND_OK) {
		pq.PQclear(again);
		return result;
	}
	pq.PQclear(again);
	pq.PQclear(result);
	return pq.PQexecPrepared(connection, name, count, values, lengths, formats, format);
}

EXPORTED PGresult *PQexec(PGconn *connection, const char *text)
{
	if (!surus_libpq_load()) {
		return NULL;
	}
	if (text && strncmp(text, DEALLOCATE, sizeof DEALLOCATE - 1) == 0) {
		statement *one = with_alias(connection, text + sizeof "DEALLOCATE " - 1);
		if (one) {
			one->alias[0] = '\0';
			return done(connection);
		}
	}
	return pq.PQexec(connection, text);
}

/* With these, newer versions of PDO execute and close; libpq 17 has the second one. */
EXPORTED int PQsendQueryPrepared(PGconn *connection, const char *name, int count, const char *const *values, const int *lengths,
	const int *formats, int format)
{
	if (!surus_libpq_load()) {
		return 0;
	}
	const statement *one = with_alias(connection, name);
	return pq.PQsendQueryPrepared(connection, one ? one->name : name, count, values, lengths, formats, format);
}

EXPORTED PGresult *PQclosePrepared(PGconn *connection, const char *name)
{
	if (!surus_libpq_load() || !pq.PQclosePrepared) {
		return NULL;
	}
	statement *one = with_alias(connection, name);
	if (!one) {
		return pq.PQclosePrepared(connection, name);
	}
	one->alias[0] = '\0';
	return done(connection);
}

EXPORTED void PQreset(PGconn *connection)
{
	if (surus_libpq_load()) {
		end(connection);
		pq.PQreset(connection);
	}
}

EXPORTED void PQfinish(PGconn *connection)
{
	if (surus_libpq_load()) {
		end(connection);
		pq.PQfinish(connection);
	}
}
