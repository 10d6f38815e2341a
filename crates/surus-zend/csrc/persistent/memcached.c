/* Persistent clients of Memcached, whose resource is libmemcached's handle. memcached has no sessions, but there may be
 * unread answers. And after a failed connection libmemcached does not contact the server for some time. All connections
 * of a cancelled request fail, and this must not affect the next request. */
#include "persistent/memcached.h"
#include "persistent/kept.h"
#include "task/running.h"
#include "task/state.h"

#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <time.h>

static int client_type, session_type;

typedef const void *instance;
static struct {
	bool looked, found;
	uint32_t (*count)(const void *client);
	instance (*at)(const void *client, uint32_t position);
	uint32_t (*responses)(instance);
	in_port_t (*port)(instance);
	void (*retry)(instance, time_t);
	void (*quit)(void *client);
} lib;

static bool load(void)
{
	if (!lib.looked) {
		lib.looked = true;
		lib.count = (uint32_t(*)(const void *))dlsym(RTLD_DEFAULT, "memcached_server_count");
		lib.at = (instance(*)(const void *, uint32_t))dlsym(RTLD_DEFAULT, "memcached_server_instance_by_position");
		lib.responses = (uint32_t(*)(instance))dlsym(RTLD_DEFAULT, "memcached_server_response_count");
		lib.port = (in_port_t(*)(instance))dlsym(RTLD_DEFAULT, "memcached_server_port");
		lib.retry = (void (*)(instance, time_t))dlsym(RTLD_DEFAULT, "memcached_instance_next_retry");
		lib.quit = (void (*)(void *))dlsym(RTLD_DEFAULT, "memcached_quit");
		lib.found = lib.count && lib.at && lib.responses && lib.quit;
	}
	return lib.found;
}

/* An object of PHP's class begins with the handle. */
static void *client_of(const zend_object *object)
{
	return *(void **)((char *)object - object->handlers->offset);
}

static bool has_object(const void *client)
{
	for (uint32_t i = 1; i < EG(objects_store).top; i++) {
		zend_object *object = EG(objects_store).object_buckets[i];
		if (IS_OBJ_VALID(object) && object->handlers->offset
			&& (zend_string_equals_literal(object->ce->name, "Memcached")
				|| (object->ce->type == ZEND_USER_CLASS && object->handlers->free_obj != zend_object_std_dtor))
			&& client_of(object) == client) {
			return true;
		}
	}
	return false;
}

static bool is_owed_answers(void *client)
{
	bool owed = false;
	for (uint32_t n = 0; n < lib.count(client); n++) {
		owed = owed || lib.responses(lib.at(client, n)) > 0;
	}
	return owed;
}

/* After this the client connects again at its next use, without a delay. */
static void close_connections(void *client)
{
	lib.quit(client);
	for (uint32_t n = 0; lib.retry && n < lib.count(client); n++) {
		lib.retry(lib.at(client, n), 0);
	}
}

/* libmemcached has no function for an instance's descriptor, which comes after its port: 1.1, then 1.0. */
static const size_t port_offsets[] = {16, 12};

typedef struct {
	in_port_t port;
	int descriptor;
} instance_part;

/* -1 if there is none, or if the layout of the instance is different. */
static int descriptor_of(instance of)
{
	for (size_t i = 0; lib.port && i < sizeof port_offsets / sizeof *port_offsets; i++) {
		const instance_part *part = (const void *)((const char *)of + port_offsets[i]);
		struct stat file;
		if (part->port == lib.port(of) && part->descriptor >= 0 && fstat(part->descriptor, &file) == 0 && S_ISSOCK(file.st_mode)) {
			return part->descriptor;
		}
	}
	return -1;
}

/* Closes connections that the server has closed, or on which it has sent data, while the client was idle. */
static void close_ended(void *client)
{
	if (is_owed_answers(client)) {
		return; /* it is not idle */
	}
	for (uint32_t n = 0; n < lib.count(client); n++) {
		int descriptor = descriptor_of(lib.at(client, n));
		if (descriptor >= 0 && surus_is_readable(descriptor)) {
			close_connections(client);
			return;
		}
	}
}

bool surus_memcached_is_owed(const zend_object *object)
{
	void *client = client_of(object);
	return client && load() && is_owed_answers(client);
}

void surus_memcached_reconnect(const zend_object *object)
{
	void *client = client_of(object);
	if (client && load()) {
		close_connections(client);
	}
}

static zif_handler real_construct, real_session_start;

static bool is_kept(const void *client)
{
	return surus_kept_has(client_type, client);
}

static ZEND_NAMED_FUNCTION(around_construct)
{
	real_construct(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (Z_TYPE_P(ZEND_THIS) == IS_OBJECT) {
		void *client = client_of(Z_OBJ_P(ZEND_THIS));
		if (client && surus_running && is_kept(client) && !surus_kept_was_used(surus_request_of(surus_running), client) && load()) {
			close_ended(client);
		}
		surus_kept_use(SURUS_KEPT_MEMCACHED, client);
	}
}

static ZEND_NAMED_FUNCTION(around_session_start)
{
	surus_kept_list kept = surus_kept_of(session_type);
	for (size_t i = 0; i < kept.count && load(); i++) {
		close_ended(kept.entries[i].resource->ptr);
	}
	surus_kept_free(&kept);
	real_session_start(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

void surus_memcached_start(void)
{
	client_type = zend_fetch_list_dtor_id("Memcached persistent connection");
	session_type = zend_fetch_list_dtor_id("Memcached Sessions persistent connection");
	if (client_type) {
		real_construct = surus_replace("memcached", "__construct", around_construct);
	}
	if (session_type) {
		real_session_start = surus_replace(NULL, "session_start", around_session_start);
	}
}

void surus_memcached_clean(surus_task *task)
{
	surus_kept_list kept = surus_kept_of(load() ? client_type : 0);
	for (size_t i = 0; i < kept.count; i++) {
		void *client = kept.entries[i].resource->ptr;
		if (!surus_kept_was_used(task, client)) {
			continue;
		}
		bool lives = has_object(client), was_cut = task->cancel != SURUS_CANCEL_NONE;
		if (was_cut && !lives) {
			surus_kept_close(&kept.entries[i]); /* its user adds the servers of a new one */
		} else if (was_cut || (!lives && is_owed_answers(client))) {
			close_connections(client);
		}
	}
	surus_kept_free(&kept);
}

/* For sessions in memcached, with memcached.sess_persistent. */
void surus_memcached_close_sessions(void)
{
	surus_kept_list kept = surus_kept_of(session_type);
	for (size_t i = 0; i < kept.count; i++) {
		surus_kept_close(&kept.entries[i]);
	}
	surus_kept_free(&kept);
}
