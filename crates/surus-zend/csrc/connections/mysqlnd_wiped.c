/* Prepared statements of mysqlnd whose connection ends between the columns of an answer and the packet after them.
 * mysqlnd then fills the whole statement with zeros, including the pointers to its connection and to its error, and
 * uses the latter, which crashes the process ("this will crash", says a comment in its code). Here the statement is
 * repaired, and the call fails as if the connection had ended anywhere else. */
#include "connections/mysqlnd_wiped.h"

#include "ext/mysqlnd/mysqlnd.h"
#include "ext/mysqlnd/mysqlnd_ext_plugin.h"

#include <dlfcn.h>

static func_mysqlnd_conn_data__query_read_result_set_header read_header;
static func_mysqlnd_stmt__prepare prepare;

static bool is_wiped(const MYSQLND_STMT_DATA *data)
{
	return !data->conn && !data->error_info;
}

/* The number of references that its result releases. */
static unsigned references_of_result(const MYSQLND_STMT_DATA *data)
{
	return data->result && data->result->conn == data->conn;
}

/* ---- execute ---- */

static enum_func_status around_read_header(MYSQLND_CONN_DATA *connection, MYSQLND_STMT *statement)
{
	MYSQLND_STMT_DATA *data = statement ? statement->data : NULL;
	if (!data || data->conn != connection) {
		return read_header(connection, statement);
	}
	MYSQLND_STMT_DATA before = *data;
	unsigned references = connection->refcount - references_of_result(data);
	connection->m->get_reference(connection);
	enum_func_status status = read_header(connection, statement);
	/* A mysqlnd that has released the statement's reference has ended it correctly. */
	if (status == FAIL && is_wiped(data) && connection->refcount > references) {
		*data = before; /* but for the result, which has been freed */
		data->result = NULL;
		data->state = MYSQLND_STMT_INITTED;
	}
	connection->m->free_reference(connection);
	return status;
}

/* ---- prepare ---- */

/* Gives it the data of an empty statement, and frees the zeroed data. */
static void replace(MYSQLND_STMT *statement, MYSQLND_CONN_DATA *connection)
{
	MYSQLND_STMT *empty = connection->m->stmt_init(connection);
	if (empty) {
		MYSQLND_STMT_DATA *wiped = statement->data;
		statement->data = empty->data;
		empty->data = wiped;
		COPY_CLIENT_ERROR(statement->data->error_info, *connection->error_info);
		empty->m->dtor(empty, true);
	}
}

static enum_func_status around_prepare(MYSQLND_STMT *const statement, const char *const query, const size_t length)
{
	MYSQLND_CONN_DATA *connection = statement && statement->data ? statement->data->conn : NULL;
	if (!connection) {
		return prepare(statement, query, length);
	}
	unsigned references = connection->refcount - references_of_result(statement->data);
	connection->m->get_reference(connection);
	enum_func_status status = prepare(statement, query, length);
	if (status == FAIL && is_wiped(statement->data)) {
		if (connection->refcount > references) {
			connection->m->free_reference(connection); /* the statement's: a mysqlnd that has forgotten it */
		}
		replace(statement, connection);
	}
	connection->m->free_reference(connection);
	return status;
}

void surus_mysqlnd_start(void)
{
	static MYSQLND_CLASS_METHODS_TYPE(mysqlnd_conn_data) connection_methods;
	static MYSQLND_CLASS_METHODS_TYPE(mysqlnd_stmt) statement_methods;
	const struct st_mysqlnd_plugin_methods_xetters *plugin = dlsym(RTLD_DEFAULT, "mysqlnd_plugin_methods_xetters");
	if (!plugin) {
		return;
	}
	connection_methods = *plugin->connection_data.get();
	read_header = connection_methods.query_read_result_set_header;
	connection_methods.query_read_result_set_header = around_read_header;
	plugin->connection_data.set(&connection_methods);
	statement_methods = *plugin->statement.get();
	prepare = statement_methods.prepare;
	statement_methods.prepare = around_prepare;
	plugin->statement.set(&statement_methods);
}
