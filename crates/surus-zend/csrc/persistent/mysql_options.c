/* What mysqli_options() sets on an open connection stays in structs of mysqlnd as long as the connection does. */
#include "persistent/mysql_options.h"

#include "ext/mysqlnd/mysqlnd_alloc.h"
#include "ext/mysqlnd/mysqlnd_structs.h"

#include <dlfcn.h>

/* An entry stays after its connection was closed; the next connection at this address reuses it. */
typedef struct noted {
	struct noted *next;
	const MYSQLND_CONN_DATA *data;
	MYSQLND_SESSION_OPTIONS options; /* only its plain values */
	MYSQLND_VIO_OPTIONS stream;      /* only its timeouts */
	char *charset, *folder;
} noted;

static noted *all_noted;

static noted *find(const MYSQLND_CONN_DATA *data)
{
	noted *found = all_noted;
	while (found && found->data != data) {
		found = found->next;
	}
	return found;
}

static void keep_text(char **kept, const char *text)
{
	free(*kept);
	*kept = text ? strdup(text) : NULL;
}

void surus_mysqlnd_note_options(MYSQLND_CONN_DATA *data)
{
	noted *known = find(data);
	if (!data->options || (!known && !(known = calloc(1, sizeof *known)))) {
		return;
	}
	if (!known->data) {
		known->data = data;
		known->next = all_noted;
		all_noted = known;
	}
	known->options = *data->options;
	if (data->vio) {
		known->stream = data->vio->data->options;
	}
	keep_text(&known->charset, data->options->charset_name);
	keep_text(&known->folder, data->options->local_infile_directory);
}

static void release(char *text, bool persistent)
{
	const struct st_mysqlnd_allocator_methods *allocator = dlsym(RTLD_DEFAULT, "mysqlnd_allocator");
	if (text && allocator) {
		allocator->m_pefree(text, persistent MYSQLND_MEM_C);
	}
}

static bool is_same(const char *one, const char *other)
{
	return one == other || (one && other && strcmp(one, other) == 0);
}

void surus_mysqlnd_restore_options(MYSQLND_CONN_DATA *data)
{
	const noted *known = find(data);
	MYSQLND_SESSION_OPTIONS *now = data->options;
	if (!known || !now) {
		return;
	}
	now->flags = known->options.flags;
	now->protocol = known->options.protocol;
	now->max_allowed_packet = known->options.max_allowed_packet;
	now->int_and_float_native = known->options.int_and_float_native;
	while (now->num_commands > known->options.num_commands) {
		release(now->init_commands[--now->num_commands], data->persistent);
	}
	if (!is_same(now->charset_name, known->charset) && known->charset) {
		data->m->set_client_option(data, MYSQL_SET_CHARSET_NAME, known->charset);
	} else if (!known->charset) {
		release(now->charset_name, data->persistent);
		now->charset_name = NULL;
	}
	if (!is_same(now->local_infile_directory, known->folder)) {
		data->m->set_client_option(data, MYSQL_OPT_LOAD_DATA_LOCAL_DIR, known->folder);
	}
	if (data->vio) {
		data->vio->data->options.timeout_connect = known->stream.timeout_connect;
		data->vio->data->options.timeout_read = known->stream.timeout_read;
		data->vio->data->options.timeout_write = known->stream.timeout_write;
	}
}
