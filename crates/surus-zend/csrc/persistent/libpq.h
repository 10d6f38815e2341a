/* libpq's functions, declared without its headers: an extension loads the library. */
#ifndef SURUS_PERSISTENT_LIBPQ_H
#define SURUS_PERSISTENT_LIBPQ_H

#include "base.h"
#include "persistent/pgsql.h"

#include <time.h>

typedef struct pg_result PGresult;
typedef struct pg_notify PGnotify;
typedef unsigned pg_type;
typedef void (*notice_processor)(void *, const char *);
enum { STATUS_OK = 0 };
enum { TRANSACTION_IDLE = 0, TRANSACTION_ACTIVE = 1, TRANSACTION_UNKNOWN = 4 };
enum { RESULT_COMMAND_OK = 1, RESULT_TUPLES_OK = 2, RESULT_COPY_OUT = 3, RESULT_COPY_IN = 4, RESULT_COPY_BOTH = 8 };
enum { DEFAULT_VERBOSITY = 1, CONTEXT_OF_ERRORS = 1 };

#define LIBPQ_FUNCTIONS(X)                                                      \
	X(int, PQstatus, (const PGconn *))                                          \
	X(int, PQtransactionStatus, (const PGconn *))                               \
	X(int, PQsocket, (const PGconn *))                                          \
	X(int, PQsetnonblocking, (PGconn *, int))                                   \
	X(int, PQsendQuery, (PGconn *, const char *))                               \
	X(int, PQconsumeInput, (PGconn *))                                          \
	X(int, PQisBusy, (PGconn *))                                                \
	X(PGresult *, PQgetResult, (PGconn *))                                      \
	X(int, PQresultStatus, (const PGresult *))                                  \
	X(int, PQntuples, (const PGresult *))                                       \
	X(char *, PQgetvalue, (const PGresult *, int, int))                         \
	X(void, PQclear, (PGresult *))                                              \
	X(PGnotify *, PQnotifies, (PGconn *))                                       \
	X(void, PQfreemem, (void *))                                                \
	X(void, PQuntrace, (PGconn *))                                              \
	X(int, PQsetErrorVerbosity, (PGconn *, int))                                \
	X(int, PQsetErrorContextVisibility, (PGconn *, int))                        \
	X(notice_processor, PQsetNoticeProcessor, (PGconn *, notice_processor, void *)) \
	X(PGresult *, PQexec, (PGconn *, const char *))                             \
	X(PGresult *, PQprepare, (PGconn *, const char *, const char *, int, const pg_type *)) \
	X(PGresult *, PQexecPrepared, (PGconn *, const char *, int, const char *const *, const int *, const int *, int)) \
	X(int, PQsendQueryPrepared, (PGconn *, const char *, int, const char *const *, const int *, const int *, int)) \
	X(int, PQsslInUse, (PGconn *))                                              \
	X(PGresult *, PQmakeEmptyPGresult, (PGconn *, int))                         \
	X(char *, PQresultErrorField, (const PGresult *, int))                      \
	X(void, PQreset, (PGconn *))                                                \
	X(void, PQfinish, (PGconn *))

typedef struct {
	bool loaded;
#define DECLARE(type, name, arguments) type(*name) arguments;
	LIBPQ_FUNCTIONS(DECLARE)
#undef DECLARE
	/* Not in every libpq; may be NULL. */
	int (*PQpipelineStatus)(const PGconn *);
	int (*PQgssEncInUse)(PGconn *);
	PGresult *(*PQclosePrepared)(PGconn *, const char *);
} surus_libpq;

/* After surus_libpq_load(). */
extern surus_libpq pq;

/* Shuts down a connection that is not idle: libpq then treats it as broken, and no call on it waits. */
void surus_libpq_sever(PGconn *connection);
/* The same for any connection. */
void surus_libpq_break(PGconn *connection);
/* Waits for more of an answer and reads it, until SURUS_PATIENCE_MS after `begun`. False: it has not come, or the connection is
 * lost. */
bool surus_libpq_receive(PGconn *connection, const struct timespec *begun);
/* Reads the rest of an answer, if it ends soon; otherwise shuts the connection down. */
void surus_libpq_settle(PGconn *connection);

#endif
