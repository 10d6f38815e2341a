#include "fiber/mbstring.h"
#include "hidden/layout.h"
#include "persistent/libpq.h"

/* Debian's extension has it; surus_mb_find() compares sizes. */
#undef HAVE_MBREGEX
#define HAVE_MBREGEX 1
#include "ext/mbstring/mbstring.h"

#include <malloc.h>

typedef struct {
	const mbfl_encoding *internal, *http_output;
	const mbfl_encoding *identified[5];
	const mbfl_encoding *last_used;
	zend_string *last_used_name;
	size_t illegal_chars;
#define DECLARE(type, field) type field;
	SURUS_MB_OUTPUT(DECLARE)
#undef DECLARE
	int illegal_mode, illegal_substitute;
	bool internal_set, http_output_set, http_input_set;
	/* A list on the request's heap that mb_detect_order() frees. */
	const mbfl_encoding **order;
	size_t order_size;
	/* Only the pointer is swapped. */
	surus_mb_regex *regex;
	/* Only in the idle state: the initial contents of `*regex`. */
	surus_mb_regex fresh;
} mb_state;

static zend_module_entry *mbstring;
static zend_mbstring_globals *globals;

static bool is_as_expected(const surus_mb_regex *regex)
{
	return regex && malloc_usable_size((void *)regex) >= sizeof *regex && regex->default_type
		&& regex->default_type == regex->current_type && regex->syntax && Z_TYPE(regex->search_string) == IS_UNDEF
		&& !regex->search_position && !regex->search_pattern && !regex->search_registers;
}

/* Made and freed as the module does it for a thread. */
static surus_mb_regex *make_regex(void)
{
	zend_mbstring_globals scratch = {0};
	mbstring->globals_ctor(&scratch);
	return (surus_mb_regex *)scratch.mb_regex_globals;
}

static void free_regex(surus_mb_regex *regex)
{
	zend_mbstring_globals scratch = {0};
	scratch.mb_regex_globals = (struct _zend_mb_regex_globals *)regex;
	mbstring->globals_dtor(&scratch);
}

size_t surus_mb_find(void)
{
	zend_module_entry *module = zend_hash_str_find_ptr(&module_registry, "mbstring", sizeof "mbstring" - 1);
	if (!module || module->globals_size != sizeof *globals || !module->globals_ctor || !module->globals_dtor) {
		return 0;
	}
	mbstring = module;
	surus_mb_regex *sample = make_regex();
	bool known = is_as_expected(sample);
	free_regex(sample);
	if (!known) {
		mbstring = NULL;
		return 0;
	}
	globals = module->globals_ptr;
	return sizeof(mb_state);
}

static const mbfl_encoding **copy_order(const mbfl_encoding **order, size_t size)
{
	const mbfl_encoding **copy = safe_emalloc(size, sizeof *copy, 0);
	memcpy(copy, order, size * sizeof *copy);
	return copy;
}

void surus_mb_save(void *to)
{
	mb_state *state = to;
	state->internal = globals->current_internal_encoding;
	state->http_output = globals->current_http_output_encoding;
	memcpy(state->identified, &globals->http_input_identify, sizeof state->identified);
	state->last_used = globals->last_used_encoding;
	state->last_used_name = globals->last_used_encoding_name;
	state->illegal_chars = globals->illegalchars;
#define SAVE(type, field) state->field = globals->field;
	SURUS_MB_OUTPUT(SAVE)
#undef SAVE
	state->illegal_mode = globals->current_filter_illegal_mode;
	state->illegal_substitute = globals->current_filter_illegal_substchar;
	state->internal_set = globals->internal_encoding_set;
	state->http_output_set = globals->http_output_set;
	state->http_input_set = globals->http_input_set;
	state->order = globals->current_detect_order_list;
	state->order_size = globals->current_detect_order_list_size;
	state->regex = (surus_mb_regex *)globals->mb_regex_globals;
}

/* All but `order` and `regex`. */
static void load_fields(const mb_state *state)
{
	globals->current_internal_encoding = state->internal;
	globals->current_http_output_encoding = state->http_output;
	memcpy(&globals->http_input_identify, state->identified, sizeof state->identified);
	globals->last_used_encoding = state->last_used;
	globals->last_used_encoding_name = state->last_used_name;
	globals->illegalchars = state->illegal_chars;
#define LOAD(type, field) globals->field = state->field;
	SURUS_MB_OUTPUT(LOAD)
#undef LOAD
	globals->current_filter_illegal_mode = state->illegal_mode;
	globals->current_filter_illegal_substchar = state->illegal_substitute;
	globals->internal_encoding_set = state->internal_set;
	globals->http_output_set = state->http_output_set;
	globals->http_input_set = state->http_input_set;
}

void surus_mb_load(const void *from)
{
	const mb_state *state = from;
	load_fields(state);
	globals->current_detect_order_list = state->order;
	globals->current_detect_order_list_size = state->order_size;
	globals->mb_regex_globals = (struct _zend_mb_regex_globals *)state->regex;
}

void surus_mb_make(void *state, const void *idle)
{
	mb_state *own = state;
	memcpy(own, idle, sizeof *own);
	own->order = copy_order(own->order, own->order_size);
	own->regex = make_regex();
	memcpy(own->regex, &own->fresh, sizeof own->fresh);
}

void surus_mb_free(void *state)
{
	mb_state *own = state;
	efree(own->order);
	free_regex(own->regex);
}

static bool has_order(const mb_state *idle)
{
	return globals->current_detect_order_list_size == idle->order_size
		&& memcmp(globals->current_detect_order_list, idle->order, idle->order_size * sizeof *idle->order) == 0;
}

static bool has_regex(const mb_state *idle)
{
	const surus_mb_regex *now = (const surus_mb_regex *)globals->mb_regex_globals, *fresh = &idle->fresh;
	return now->current_type == fresh->current_type && now->options == fresh->options && now->syntax == fresh->syntax
		&& now->cache.nTableMask == HT_MIN_MASK && Z_TYPE(now->search_string) == IS_UNDEF && !now->search_position
		&& !now->search_pattern && !now->search_registers;
}

bool surus_mb_is(const void *from)
{
	const mb_state *idle = from;
	return globals->current_internal_encoding == idle->internal && globals->current_http_output_encoding == idle->http_output
		&& globals->last_used_encoding_name == idle->last_used_name && globals->illegalchars == idle->illegal_chars
#define IS(type, field) && globals->field == idle->field
		SURUS_MB_OUTPUT(IS)
#undef IS
		&& globals->current_filter_illegal_mode == idle->illegal_mode
		&& globals->current_filter_illegal_substchar == idle->illegal_substitute
		&& globals->internal_encoding_set == idle->internal_set && globals->http_output_set == idle->http_output_set
		&& globals->http_input_set == idle->http_input_set
		&& memcmp(&globals->http_input_identify, idle->identified, sizeof idle->identified) == 0 && has_order(idle)
		&& has_regex(idle);
}

/* Ends and starts a request, as between two requests of a process; then sets `order` in place of that of the
 * settings. */
static void restart(const mbfl_encoding **order, size_t order_size)
{
	mbstring->request_shutdown_func(mbstring->type, mbstring->module_number);
	mbstring->request_startup_func(mbstring->type, mbstring->module_number);
	efree(globals->current_detect_order_list);
	globals->current_detect_order_list = order;
	globals->current_detect_order_list_size = order_size;
}

void surus_mb_reset(const void *from)
{
	const mb_state *idle = from;
	if (SURUS_MB_HAS_OUTPUT(globals) || !has_regex(idle) || !has_order(idle)) {
		restart(copy_order(idle->order, idle->order_size), idle->order_size);
		memcpy(globals->mb_regex_globals, &idle->fresh, sizeof idle->fresh);
	} else if (globals->last_used_encoding_name) {
		zend_string_release(globals->last_used_encoding_name);
	}
	load_fields(idle);
}

void surus_mb_settle(void)
{
	mb_state now;
	surus_mb_save(&now);
	surus_mb_regex regex = *now.regex;
	restart(copy_order(now.order, now.order_size), now.order_size);
	now.last_used_name = NULL;
	now.last_used = NULL;
#define CLEAR(type, field) now.field = 0;
	SURUS_MB_OUTPUT(CLEAR)
#undef CLEAR
	load_fields(&now);
	now.regex->current_type = regex.current_type;
	now.regex->current_encoding = regex.current_encoding;
	now.regex->options = regex.options;
	now.regex->syntax = regex.syntax;
}

void surus_mb_take_fresh(void *idle)
{
	mb_state *state = idle;
	memcpy(&state->fresh, state->regex, sizeof state->fresh);
}
