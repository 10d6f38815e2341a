/* Persistent connections to MySQL and MariaDB, of PDO and of mysqli ("p:"). COM_CHANGE_USER with the same user resets a
 * session: transaction, locks, temporary tables, prepared statements, variables, database. mysqli itself does this when
 * a request gets the connection; COM_RESET_CONNECTION releases the last user's locks before that. */
#include "persistent/mysql.h"
#include "persistent/kept.h"
#include "persistent/mysql_options.h"
#include "persistent/pool.h"

#include "ext/mysqli/php_mysqli_structs.h"
#include "ext/mysqlnd/mysqlnd.h"
#include "ext/mysqlnd/mysqlnd_connection.h"
#include "ext/mysqlnd/mysqlnd_ext_plugin.h"
#include "main/php_network.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

/* An entry of mysqli holds its idle connections to one database: one, if a request has opened one. */
static surus_pool_kind kind = {.label = "mysqli"};

/* Reads memory that may not be mapped. */
static bool read_safely(const void *from, void *to, size_t size)
{
	struct iovec local = {to, size}, remote = {(void *)from, size};
	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

bool surus_is_mysqlnd(void *candidate)
{
	const struct st_mysqlnd_plugin_methods_xetters *methods = dlsym(RTLD_DEFAULT, "mysqlnd_plugin_methods_xetters");
	MYSQLND connection;
	return methods && methods->connection.get && read_safely(candidate, &connection, sizeof connection)
		&& connection.m == methods->connection.get();
}

/* Restores the character set of the connection's start: a request may have chosen another one, which the client uses
 * for quoting. */
static void restore_charset(MYSQLND_CONN_DATA *data)
{
	const MYSQLND_CHARSET *(*find)(const char *) = (const MYSQLND_CHARSET *(*)(const char *))dlsym(RTLD_DEFAULT, "mysqlnd_find_charset_name");
	const MYSQLND_CHARSET *charset = find && data->options->charset_name ? find(data->options->charset_name) : NULL;
	if (!charset) {
		charset = data->greet_charset;
	}
	if (charset) {
		data->charset = charset;
	}
}

/* In any other state unread rows are still to come, or the connection is closed. */
static bool is_idle(MYSQLND_CONN_DATA *data)
{
	return data && GET_CONNECTION_STATE(&data->state) == CONN_READY && !(data->upsert_status->server_status & SERVER_MORE_RESULTS_EXISTS);
}

static php_stream *stream_of(const MYSQLND_CONN_DATA *data)
{
	return data->vio ? data->vio->data->stream : NULL;
}

static int descriptor_of(const MYSQLND_CONN_DATA *data)
{
	php_stream *stream = stream_of(data);
	php_socket_t descriptor = -1;
	if (!stream || php_stream_cast(stream, PHP_STREAM_AS_FD_FOR_SELECT | PHP_STREAM_CAST_INTERNAL, (void *)&descriptor, 0) != SUCCESS) {
		return -1;
	}
	return descriptor;
}

/* Reads the next part of an answer that nobody needs; false: there is none, or it does not come. */
static bool read_part(MYSQLND_CONN_DATA *data)
{
	struct pollfd state = {.fd = descriptor_of(data), .events = POLLIN};
	MYSQLND_RES *result;
	switch (GET_CONNECTION_STATE(&data->state)) {
		case CONN_QUERY_SENT:
			return state.fd >= 0 && poll(&state, 1, SURUS_PATIENCE_MS) > 0 && data->m->reap_query(data) == PASS;
		case CONN_FETCHING_DATA:
			result = data->m->use_result(data);
			return result && result->m.free_result(result, false) == PASS;
		case CONN_NEXT_RESULT_PENDING:
			return data->m->next_result(data) == PASS;
		default:
			return false;
	}
}

#define MAX_PARTS 64

void surus_mysqlnd_settle(void *connection)
{
	MYSQLND_CONN_DATA *data = ((MYSQLND *)connection)->data;
	if (!data || GET_CONNECTION_STATE(&data->state) == CONN_QUIT_SENT) {
		return;
	}
	for (unsigned parts = 0; parts < MAX_PARTS && !is_idle(data) && read_part(data); parts++) {
	}
	if (!is_idle(data)) {
		data->m->send_close(data);
	}
}

/* MariaDB keeps the role through a reset, unless the user has a default role, which a reset sets. */
static bool leave_role(MYSQLND_CONN_DATA *data)
{
	static const char command[] = "SET ROLE NONE";
	return !data->server_version || !strstr(data->server_version, "MariaDB") || data->m->query(data, command, sizeof command - 1) == PASS;
}

/* The password is an argument, because mysqlnd stores another text in its place. */
bool surus_mysqlnd_reset(void *connection, const char *user, const char *password)
{
	MYSQLND_CONN_DATA *data = ((MYSQLND *)connection)->data;
	if (!is_idle(data)) {
		return false;
	}
	restore_charset(data);
	surus_patience patience = surus_patience_begin(stream_of(data));
	const char *own = data->connect_or_select_db.s;
	char *database = estrdup(own ? own : ""); /* a copy: it is stored in the place of what is there */
	bool good = leave_role(data) && data->m->change_user(data, user ? user : "", password ? password : "", database, true, password ? strlen(password) : 0) == PASS
		&& data->m->execute_init_commands(data) == PASS && is_idle(data);
	efree(database);
	surus_patience_end(&patience, stream_of(data));
	return good;
}

/* The same without database and character set, which are set when a request gets the connection. */
static bool reset_session(MYSQLND_CONN_DATA *data)
{
	surus_mysqlnd_restore_options(data);
	if (!is_idle(data)) {
		return false;
	}
	restore_charset(data);
	surus_patience patience = surus_patience_begin(stream_of(data));
	MYSQLND_PROTOCOL_PAYLOAD_DECODER_FACTORY *factory = data->payload_decoder_factory;
	bool good = leave_role(data)
		&& factory->m.send_command(factory, COM_RESET_CONNECTION, NULL, 0, true, &data->state, data->error_info, data->upsert_status,
			data->stats, data->m->send_close, data) == PASS
		&& factory->m.send_command_handle_response(factory, PROT_OK_PACKET, true, COM_RESET_CONNECTION, true, data->error_info,
			data->upsert_status, &data->last_message) == PASS;
	surus_patience_end(&patience, stream_of(data));
	return good;
}

/* ---- mysqli ---- */

static MYSQLND_CONN_DATA *data_of(zend_object *object)
{
	const MYSQLI_RESOURCE *resource = php_mysqli_fetch_object(object)->ptr;
	MYSQLND *link = resource && resource->ptr && resource->status == MYSQLI_STATUS_VALID ? ((MY_MYSQL *)resource->ptr)->mysql : NULL;
	return link && surus_is_mysqlnd(link) ? link->data : NULL;
}

#define CONSTRUCTORS(X)                             \
	X(function, NULL, "mysqli_connect")             \
	X(constructor, "mysqli", "__construct")         \
	X(method, "mysqli", "connect")                  \
	X(real_function, NULL, "mysqli_real_connect")   \
	X(real_method, "mysqli", "real_connect")

/* The functions take the object before the host. */
static uint32_t host_at(const zend_execute_data *execute_data)
{
	bool has_object = Z_TYPE(EX(This)) != IS_OBJECT && ZEND_NUM_ARGS() > 0 && Z_TYPE_P(ZEND_CALL_ARG(execute_data, 1)) == IS_OBJECT;
	return has_object ? 2 : 1;
}

/* What the application has set before a connection is opened belongs to the connection. */
static void open_link(INTERNAL_FUNCTION_PARAMETERS, zif_handler real)
{
	uint32_t host = host_at(execute_data);
	const zval *text = ZEND_NUM_ARGS() >= host ? ZEND_CALL_ARG(execute_data, host) : NULL;
	bool pooled = text && Z_TYPE_P(text) == IS_STRING && zend_string_starts_with_literal(Z_STR_P(text), "p:");
	surus_pool_name name = surus_pool_name_of(&kind, execute_data, host, host + 5);
	if (pooled && !surus_pool_enter(&name)) {
		surus_pool_timeout("mysqli_sql_exception");
		return;
	}
	/* The object that gets the connection; a constructor has it, too. */
	const zval *object = host == 2 ? ZEND_CALL_ARG(execute_data, 1) : Z_TYPE(EX(This)) == IS_OBJECT ? &EX(This) : return_value;
	real(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	surus_kept_use(SURUS_KEPT_MYSQLI, NULL);
	if (pooled && Z_TYPE_P(object) == IS_OBJECT) {
		surus_mysqli_note(Z_OBJ_P(object));
	}
	if (pooled) {
		surus_pool_entered(&name, NULL);
	}
}

#define AROUND(name, class_name, function)                             \
	static zif_handler real_##name;                                    \
	static ZEND_NAMED_FUNCTION(around_##name)                          \
	{                                                                  \
		open_link(INTERNAL_FUNCTION_PARAM_PASSTHRU, real_##name);      \
	}
CONSTRUCTORS(AROUND)
#undef AROUND

void surus_mysqli_start(void)
{
	kind.type = zend_fetch_list_dtor_id("MySqli persistent connection");
	if (kind.type) {
#define STAND(name, class_name, function) real_##name = surus_replace(class_name, function, around_##name);
		CONSTRUCTORS(STAND)
#undef STAND
	}
}

bool surus_mysqlnd_is_alive(void *connection)
{
	MYSQLND_CONN_DATA *data = ((MYSQLND *)connection)->data;
	const php_stream *stream = is_idle(data) ? stream_of(data) : NULL;
	return stream && stream->readpos == stream->writepos && !surus_is_readable(descriptor_of(data));
}

void surus_mysqli_note(zend_object *object)
{
	MYSQLND_CONN_DATA *data = data_of(object);
	if (data) {
		surus_mysqlnd_note_options(data);
	}
}

bool surus_mysqli_reset(zend_object *object)
{
	MYSQLND_CONN_DATA *data = data_of(object);
	return data && reset_session(data) && data->m->execute_init_commands(data) == PASS && is_idle(data);
}

/* Connections in `free_links` are unused: those of objects are not in this list. */
void surus_mysqli_clean(surus_task *task)
{
	(void)task;
	surus_kept_list kept = surus_kept_of(kind.type);
	for (size_t i = 0; i < kept.count; i++) {
		mysqli_plist_entry *pool = kept.entries[i].resource->ptr;
		for (int n = 0; n < pool->free_links.top; n++) {
			MYSQLND *link = pool->free_links.elements[n];
			if (surus_is_mysqlnd(link) && link->data && !reset_session(link->data)) {
				/* mysqli checks it again before a request gets it, and opens a new one instead. */
				link->data->m->send_close(link->data);
			}
		}
	}
	surus_kept_free(&kept);
}
