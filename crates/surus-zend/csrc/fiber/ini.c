/* Settings of the requests of one isolate.
 *
 * A switch calls no PHP function: it copies a setting's value and the bytes that the setting controls. Their address is
 * known for the engine's standard handlers (from the arguments of the entry), for modules whose globals all belong to a
 * request, and for the settings of a table. For any other handler it is unknown: the handler is called in a state in
 * which it can neither report an error, nor throw, nor call PHP code.
 */
#include "fiber/ini.h"
#include "fiber/parts.h"
#include "task/state.h"

/* The maximum size of what a copied setting controls. */
#define STORAGE_MAX sizeof(uint64_t)

/* The memory that a setting controls. */
typedef struct {
	char *address;
	uint8_t size;    /* 0: the value is all there is, or what it controls is swapped with a part or a field */
	bool by_handler; /* it has to be told */
} place;

struct surus_ini_change {
	zend_ini_entry *entry;
	zend_string *value;
	uint8_t modifiable;
	char bytes[STORAGE_MAX];
};

#define FIELD(field) &field, sizeof field
#define ELSEWHERE NULL, 0
/* At the address given by the arguments of the entry. */
#define OF_ENTRY(type) NULL, sizeof(type)

/* Handlers that check a value and store it in one place. The check was made when the request set it. */
static const struct { const char *name; void *address; uint8_t size; } known[] = {
	{"error_reporting", ELSEWHERE}, /* fiber/values.h */
	{"max_execution_time", ELSEWHERE},
	{"assert.callback", ELSEWHERE}, /* fiber/parts.c */
	{"mail.force_extra_parameters", ELSEWHERE},
	{"precision", FIELD(EG(precision))},
	{"serialize_precision", FIELD(PG(serialize_precision))},
	{"memory_limit", FIELD(PG(memory_limit))}, /* the heap's own limit follows it */
	{"zend.exception_string_param_max_len", FIELD(EG(exception_string_param_max_len))},
	{"fiber.stack_size", FIELD(EG(fiber_stack_size))},
	{"syslog.facility", FIELD(PG(syslog_facility))},
	{"syslog.filter", FIELD(PG(syslog_filter))},
	{"open_basedir", FIELD(PG(open_basedir))},
	{"display_errors", FIELD(PG(display_errors))},
	{"error_log", OF_ENTRY(char *)},
	{"mail.log", OF_ENTRY(char *)},
	{"default_mimetype", OF_ENTRY(char *)},
	{"zend.assertions", OF_ENTRY(zend_long)},
	{"auto_detect_line_endings", OF_ENTRY(bool)},
	{"date.timezone", OF_ENTRY(char *)},
	{"iconv.input_encoding", OF_ENTRY(char *)},
	{"iconv.output_encoding", OF_ENTRY(char *)},
	{"iconv.internal_encoding", OF_ENTRY(char *)},
	{"exif.encode_unicode", OF_ENTRY(char *)},
	{"exif.decode_unicode_motorola", OF_ENTRY(char *)},
	{"mysqlnd.net_cmd_buffer_size", OF_ENTRY(zend_long)},
};

/* The engine's handlers, which store the parsed value at the address given by the arguments of the entry. */
static const struct { int (*handler)(zend_ini_entry *, zend_string *, void *, void *, void *, int); uint8_t size; } standard[] = {
	{OnUpdateBool, sizeof(bool)}, {OnUpdateLong, sizeof(zend_long)}, {OnUpdateLongGEZero, sizeof(zend_long)},
	{OnUpdateReal, sizeof(double)}, {OnUpdateString, sizeof(char *)}, {OnUpdateStringUnempty, sizeof(char *)},
	SURUS_STR_HANDLERS
};

/* Their entries name a part, of which the table that the handler fills is none. */
static const char *const told[] = {"session.trans_sid_tags", "url_rewriter.tags"};

/* By a setting's position in an isolate's entries, which is the same in all of them. */
static place *places;
static size_t place_count;

static place find_place(const zend_ini_entry *entry)
{
	char *argument = entry->mh_arg2 ? (char *)entry->mh_arg2 + (size_t)entry->mh_arg1 : NULL;
	for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
		if (strcmp(ZSTR_VAL(entry->name), told[i]) == 0) {
			return (place){.by_handler = true};
		}
	}
	if (!entry->on_modify || surus_parts_own_module(entry->module_number) || (argument && surus_parts_cover(argument))) {
		return (place){0};
	}
	for (size_t i = 0; argument && i < sizeof standard / sizeof *standard; i++) {
		if (entry->on_modify == standard[i].handler) {
			return (place){.address = argument, .size = standard[i].size};
		}
	}
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (strcmp(ZSTR_VAL(entry->name), known[i].name) == 0) {
			place found = {.address = known[i].address ? known[i].address : argument, .size = known[i].size};
			return found.size && !found.address ? (place){.by_handler = true} : found;
		}
	}
	return (place){.by_handler = true};
}

static const place *place_of(const zend_ini_entry *entry, const surus_isolate *isolate)
{
	return &places[entry - isolate->ini_entries];
}

void *surus_ini_take_idle(const surus_isolate *isolate)
{
	size_t count = zend_hash_num_elements(EG(ini_directives));
	if (!places) {
		places = calloc(count, sizeof *places);
		if (!places) {
			return NULL;
		}
		for (size_t i = 0; i < count; i++) {
			places[i] = find_place(&isolate->ini_entries[i]);
		}
		place_count = count;
	}
	char *bytes = calloc(place_count, STORAGE_MAX);
	for (size_t i = 0; bytes && i < place_count; i++) {
		if (places[i].size) {
			memcpy(bytes + i * STORAGE_MAX, places[i].address, places[i].size);
		}
	}
	return bytes;
}

static void say_nothing(int type, zend_string *file, const uint32_t line, zend_string *message)
{
	(void)file;
	(void)line;
	(void)message;
	if (type & (E_ERROR | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR | E_PARSE)) {
		zend_bailout();
	}
}

/* Like the engine when it restores settings at the end of a request, but errors of the handler are dropped: with a
 * pending unwind exit no exception replaces it and no PHP code is called, not even error handlers. The frame is one of
 * C code, without a caller. */
static void call_handler(zend_ini_entry *entry, zend_string *value)
{
	static zend_internal_function function = {.type = ZEND_INTERNAL_FUNCTION};
	zend_execute_data frame = {.func = (zend_function *)&function};
	if (!function.function_name) {
		function.function_name = ZSTR_EMPTY_ALLOC();
	}
	__typeof__(zend_error_cb) error_cb = zend_error_cb;
	zend_execute_data *current = EG(current_execute_data);
	zend_object *exception = EG(exception);
	zval handler = EG(user_error_handler);
	zend_error_handling_t handling = EG(error_handling);
	int reporting = EG(error_reporting);
	bool unclean = CG(unclean_shutdown);
	zend_error_cb = say_nothing;
	ZVAL_UNDEF(&EG(user_error_handler));
	EG(error_handling) = EH_NORMAL;
	EG(error_reporting) = 0;
	EG(current_execute_data) = &frame;
	EG(exception) = zend_create_unwind_exit();
	JMP_BUF *bailout = EG(bailout);
	JMP_BUF here;
	EG(bailout) = &here;
	if (SETJMP(here) == 0) {
		entry->on_modify(entry, value, entry->mh_arg1, entry->mh_arg2, entry->mh_arg3, ZEND_INI_STAGE_DEACTIVATE);
	}
	EG(bailout) = bailout;
	if (EG(exception)) {
		OBJ_RELEASE(EG(exception));
	}
	EG(exception) = exception;
	EG(current_execute_data) = current;
	EG(error_reporting) = reporting;
	CG(unclean_shutdown) = unclean;
	EG(error_handling) = handling;
	EG(user_error_handler) = handler;
	zend_error_cb = error_cb;
}

/* Sets what the entry controls to the state for `value`. */
static void control(zend_ini_entry *entry, zend_string *value, const char *bytes, const surus_isolate *isolate)
{
	const place *controlled = place_of(entry, isolate);
	if (controlled->by_handler) {
		call_handler(entry, value);
	} else if (controlled->size) {
		memcpy(controlled->address, bytes, controlled->size);
	}
}

static void restore(zend_ini_entry *entry, const char *idle, const surus_isolate *isolate)
{
	control(entry, entry->orig_value, idle + (size_t)(entry - isolate->ini_entries) * STORAGE_MAX, isolate);
	entry->value = entry->orig_value;
	entry->modifiable = entry->orig_modifiable;
	entry->modified = 0;
	entry->orig_value = NULL;
	entry->orig_modifiable = 0;
}

void surus_ini_save(surus_fiber_ini *to, const void *idle, const surus_isolate *isolate)
{
	to->modified = EG(modified_ini_directives);
	EG(modified_ini_directives) = NULL;
	if (!to->modified || zend_hash_num_elements(to->modified) == 0) {
		return;
	}
	to->changes = safe_emalloc(zend_hash_num_elements(to->modified), sizeof *to->changes, 0);
	zend_ini_entry *entry;
	ZEND_HASH_FOREACH_PTR(to->modified, entry) {
		if (!entry->modified) {
			continue;
		}
		surus_ini_change *change = &to->changes[to->count++];
		*change = (surus_ini_change){.entry = entry, .value = entry->value, .modifiable = entry->modifiable};
		const place *controlled = place_of(entry, isolate);
		if (controlled->size) {
			memcpy(change->bytes, controlled->address, controlled->size);
		}
		restore(entry, idle, isolate);
	} ZEND_HASH_FOREACH_END();
}

void surus_ini_load(surus_fiber_ini *from, const surus_isolate *isolate)
{
	for (size_t i = 0; i < from->count; i++) {
		surus_ini_change *change = &from->changes[i];
		zend_ini_entry *entry = change->entry;
		entry->orig_value = entry->value;
		entry->orig_modifiable = entry->modifiable;
		entry->modified = 1;
		entry->modifiable = change->modifiable;
		control(entry, change->value, change->bytes, isolate);
		entry->value = change->value;
	}
	if (from->changes) {
		efree(from->changes);
	}
	EG(modified_ini_directives) = from->modified;
	*from = (surus_fiber_ini){0};
}

void surus_ini_reset(const void *idle, const surus_isolate *isolate)
{
	HashTable *modified = EG(modified_ini_directives);
	if (!modified) {
		return;
	}
	EG(modified_ini_directives) = NULL;
	zend_ini_entry *entry;
	ZEND_HASH_FOREACH_PTR(modified, entry) {
		zend_string *value = entry->value;
		if (entry->modified) {
			bool is_own = value && value != entry->orig_value;
			restore(entry, idle, isolate);
			if (is_own) {
				zend_string_release(value);
			}
		}
	} ZEND_HASH_FOREACH_END();
	zend_hash_destroy(modified);
	FREE_HASHTABLE(modified);
}
