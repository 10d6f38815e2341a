/* JSON of responses: like json_encode(), but a DateTimeInterface is a string (RFC 3339). json_encode() itself is
 * unchanged.
 *
 * PHP's encoder requests the properties of an object. For a date it gets one property here: a random name, and the date
 * as its value. In the resulting text this object is replaced by the value. */
#include "http/json.h"
#include "task/running.h"
#include "task/state.h"

#include "Zend/zend_interfaces.h"
#include "ext/date/php_date.h"
#include "ext/json/php_json.h"

#include <string.h>
#include <sys/random.h>

#define FLAGS (PHP_JSON_UNESCAPED_SLASHES | PHP_JSON_UNESCAPED_UNICODE | PHP_JSON_THROW_ON_ERROR)

/* The beginning of an object that represents a date: a brace, the name, a colon. */
#define NAME_SIZE 32
static char name[NAME_SIZE + 1], beginning[NAME_SIZE + 5];

static HashTable *(*own_properties_for)(zend_object *object, zend_prop_purpose purpose);

/* Only in the frame in which the encoding began: json_encode() inside of a jsonSerialize() is not affected. */
static bool is_meant(const surus_task *task)
{
	return task && task->encoding && task->encoding->frame == EG(current_execute_data);
}

static HashTable *properties_for(zend_object *object, zend_prop_purpose purpose)
{
	if (purpose != ZEND_PROP_PURPOSE_JSON || !is_meant(surus_running)) {
		return own_properties_for(object, purpose);
	}
	zval format, text;
	zend_class_entry *class = instanceof_function(object->ce, php_date_get_immutable_ce()) ? php_date_get_immutable_ce() : php_date_get_date_ce();
	zend_function *function = zend_hash_str_find_ptr(&class->function_table, "format", sizeof "format" - 1);
	ZVAL_STRING(&format, "Y-m-d\\TH:i:s.uP");
	ZVAL_UNDEF(&text);
	zend_call_known_instance_method_with_1_params(function, object, &text, &format);
	zval_ptr_dtor(&format);
	if (Z_TYPE(text) != IS_STRING) {
		zval_ptr_dtor(&text);
		return own_properties_for(object, purpose);
	}
	char *whole = strstr(Z_STRVAL(text), ".000000");
	if (whole) {
		zend_string *shorter = zend_string_concat2(Z_STRVAL(text), (size_t)(whole - Z_STRVAL(text)), whole + 7, strlen(whole + 7));
		zval_ptr_dtor(&text);
		ZVAL_STR(&text, shorter);
	}
	HashTable *properties = zend_new_array(1);
	zend_hash_str_add_new(properties, name, NAME_SIZE, &text);
	surus_running->encoding->dates = true;
	return properties;
}

static void stand_before(zend_class_entry *class)
{
	zval date;
	if (php_date_instantiate(class, &date)) {
		zend_object_handlers *handlers = (zend_object_handlers *)Z_OBJ(date)->handlers;
		if (handlers->get_properties_for && handlers->get_properties_for != properties_for) {
			own_properties_for = handlers->get_properties_for;
			handlers->get_properties_for = properties_for;
		}
		zval_ptr_dtor(&date);
	}
}

/* At the first use, since it needs objects. */
static void start(void)
{
	unsigned char bytes[NAME_SIZE / 2];
	if (*name || getrandom(bytes, sizeof bytes, 0) != sizeof bytes) {
		return;
	}
	for (size_t i = 0; i < sizeof bytes; i++) {
		snprintf(name + 2 * i, 3, "%02x", bytes[i]);
	}
	snprintf(beginning, sizeof beginning, "{\"%s\":", name);
	stand_before(php_date_get_date_ce());
	stand_before(php_date_get_immutable_ce());
}

/* `{"name":"date"}` becomes `"date"`, in place. */
static void unwrap(zend_string *text)
{
	char *from = ZSTR_VAL(text), *to = from, *end = from + ZSTR_LEN(text), *next;
	size_t size = strlen(beginning);
	while ((next = (char *)zend_memnstr(from, beginning, size, end))) {
		memmove(to, from, (size_t)(next - from));
		to += next - from;
		from = next + size;
		char *brace = memchr(from, '}', (size_t)(end - from));
		if (!brace) {
			break;
		}
		memmove(to, from, (size_t)(brace - from));
		to += brace - from;
		from = brace + 1;
	}
	memmove(to, from, (size_t)(end - from));
	to += end - from;
	ZSTR_LEN(text) = (size_t)(to - ZSTR_VAL(text));
	*to = 0;
}

bool surus_json(smart_str *text, zval *value, int flags)
{
	surus_task *task = surus_running;
	start();
	surus_encoding encoding = {.frame = EG(current_execute_data)};
	surus_encoding *before = task ? task->encoding : NULL;
	if (task && own_properties_for) {
		task->encoding = &encoding;
	}
	int done = FAILURE;
	/* A fatal error unwinds past this frame. */
	zend_try {
		done = php_json_encode_ex(text, value, FLAGS | flags, 512);
	} zend_catch {
		if (task) {
			task->encoding = before;
		}
		zend_bailout();
	} zend_end_try();
	if (task) {
		task->encoding = before;
	}
	/* A number that JSON cannot represent is written as 0 and is not a failure: only the error code shows it. */
	if (done != SUCCESS || JSON_G(error_code) != PHP_JSON_ERROR_NONE || EG(exception)) {
		return false;
	}
	smart_str_0(text);
	if (encoding.dates && text->s) {
		unwrap(text->s);
	}
	return true;
}
