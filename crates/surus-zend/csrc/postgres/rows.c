/* From the bytes of an answer straight to PHP's values. */
#include "postgres/rows.h"

#include "Zend/zend_enum.h"
#include "Zend/zend_interfaces.h"
#include "ext/date/php_date.h"

#include <endian.h>
#include <string.h>

/* Types, from PostgreSQL's pg_type.dat. */
enum { OF_BOOL = 16, OF_BYTEA = 17, OF_INT8 = 20, OF_INT2 = 21, OF_INT4 = 23, OF_OID = 26, OF_FLOAT4 = 700, OF_FLOAT8 = 701 };

typedef struct {
	zend_string *name;
	uint32_t kind;
	bool binary;
	const zend_property_info *property; /* of the class, for objects */
} column;

typedef struct {
	column *columns;
	size_t count;
	bool unique; /* each name is there once, and none is a number */
	zend_class_entry *class;
	const char *at, *end;
} reading;

static uint16_t two(const char *at)
{
	uint16_t value;
	memcpy(&value, at, sizeof value);
	return be16toh(value);
}

static uint32_t four(const char *at)
{
	uint32_t value;
	memcpy(&value, at, sizeof value);
	return be32toh(value);
}

static uint64_t eight(const char *at)
{
	uint64_t value;
	memcpy(&value, at, sizeof value);
	return be64toh(value);
}

/* zend_strtod() does not know these, and wants an end. */
static double float_of(const char *text, size_t length)
{
	char copy[64];
	if (length >= sizeof copy) {
		return 0;
	}
	memcpy(copy, text, length);
	copy[length] = 0;
	if (strcmp(copy, "NaN") == 0) {
		return ZEND_NAN;
	}
	if (strcmp(copy, "Infinity") == 0) {
		return ZEND_INFINITY;
	}
	return strcmp(copy, "-Infinity") == 0 ? -ZEND_INFINITY : zend_strtod(copy, NULL);
}

/* False: this is no value of the type. */
static bool decode(zval *to, const column *of, const char *bytes, size_t length)
{
	if (of->kind == OF_FLOAT4 && !of->binary) {
		ZVAL_DOUBLE(to, float_of(bytes, length));
		return true;
	}
	if (!of->binary || of->kind == OF_BYTEA) {
		ZVAL_STRINGL_FAST(to, bytes, length);
		return true;
	}
	switch (of->kind) {
		case OF_BOOL:
			ZVAL_BOOL(to, length == 1 && *bytes);
			return length == 1;
		case OF_INT2:
			if (length == 2) {
				ZVAL_LONG(to, (int16_t)two(bytes));
				return true;
			}
			return false;
		case OF_INT4:
		case OF_OID:
			if (length == 4) {
				ZVAL_LONG(to, of->kind == OF_OID ? (zend_long)four(bytes) : (int32_t)four(bytes));
				return true;
			}
			return false;
		case OF_INT8:
			if (length == 8) {
				ZVAL_LONG(to, (int64_t)eight(bytes));
				return true;
			}
			return false;
		case OF_FLOAT8:
			if (length == 8) {
				uint64_t bits = eight(bytes);
				double number;
				memcpy(&number, &bits, sizeof number);
				ZVAL_DOUBLE(to, number);
				return true;
			}
	}
	return false;
}

/* The next value of a row. */
static bool next(reading *from, const column *of, zval *to)
{
	if (from->end - from->at < 4) {
		return false;
	}
	int32_t length = (int32_t)four(from->at);
	from->at += 4;
	if (length < 0) {
		ZVAL_NULL(to);
		return true;
	}
	if (from->end - from->at < length || !decode(to, of, from->at, (size_t)length)) {
		return false;
	}
	from->at += length;
	return true;
}

static bool begins_row(reading *from)
{
	if (from->end - from->at < 2 || two(from->at) != from->count) {
		return false;
	}
	from->at += 2;
	return true;
}

static bool read_array(reading *from, zval *to)
{
	array_init_size(to, from->count);
	HashTable *row = Z_ARRVAL_P(to);
	zend_hash_real_init_mixed(row);
	if (!begins_row(from)) {
		return false;
	}
	for (size_t i = 0; i < from->count; i++) {
		zval value;
		if (!next(from, &from->columns[i], &value)) {
			return false;
		}
		if (from->unique) {
			_zend_hash_append(row, from->columns[i].name, &value);
		} else {
			zend_symtable_update(row, from->columns[i].name, &value);
		}
	}
	return true;
}

static bool to_case(zval *value, zend_class_entry *class)
{
	zend_object *found;
	bool is_text = Z_TYPE_P(value) == IS_STRING;
	if (class->enum_backing_type != Z_TYPE_P(value)) {
		return true; /* the property says what it wants */
	}
	if (zend_enum_get_case_by_value(&found, class, is_text ? 0 : Z_LVAL_P(value), is_text ? Z_STR_P(value) : NULL, false) != SUCCESS) {
		return false;
	}
	zval_ptr_dtor(value);
	ZVAL_OBJ_COPY(value, found);
	return true;
}

static bool to_date(zval *value, zend_class_entry *class)
{
	zval date;
	php_date_instantiate(class, &date);
	if (!php_date_initialize(Z_PHPDATE_P(&date), Z_STRVAL_P(value), Z_STRLEN_P(value), NULL, NULL, 0)) {
		if (!EG(exception)) {
			zend_value_error("\"%s\" is no date for PHP", Z_STRVAL_P(value));
		}
		zval_ptr_dtor(&date);
		return false;
	}
	zval_ptr_dtor(value);
	ZVAL_COPY_VALUE(value, &date);
	return true;
}

/* A case of a backed enum, or a date, where the property wants one. False: an exception. */
static bool convert(zval *value, const zend_property_info *property)
{
	if (!ZEND_TYPE_HAS_NAME(property->type) || (Z_TYPE_P(value) != IS_STRING && Z_TYPE_P(value) != IS_LONG)) {
		return true;
	}
	zend_class_entry *class = zend_lookup_class(ZEND_TYPE_NAME(property->type));
	if (!class) {
		return !EG(exception);
	}
	if ((class->ce_flags & ZEND_ACC_ENUM) && class->enum_backing_type != IS_UNDEF) {
		return to_case(value, class);
	}
	if (Z_TYPE_P(value) == IS_STRING && class == php_date_get_interface_ce()) {
		return to_date(value, php_date_get_immutable_ce());
	}
	if (Z_TYPE_P(value) == IS_STRING && (class == php_date_get_immutable_ce() || class == php_date_get_date_ce())) {
		return to_date(value, class);
	}
	return true;
}

static bool read_object(reading *from, zval *to)
{
	if (!begins_row(from) || object_init_ex(to, from->class) != SUCCESS) {
		return false;
	}
	for (size_t i = 0; i < from->count; i++) {
		zval value;
		if (!next(from, &from->columns[i], &value)) {
			return false;
		}
		if (!convert(&value, from->columns[i].property)) {
			zval_ptr_dtor(&value);
			return false;
		}
		zend_update_property_ex(from->class, Z_OBJ_P(to), from->columns[i].name, &value);
		zval_ptr_dtor(&value);
		if (EG(exception)) {
			return false;
		}
	}
	return true;
}

/* Each column has a property, which is public. */
static bool fits(reading *from)
{
	zend_class_entry *class = from->class;
	if (class->ce_flags & (ZEND_ACC_INTERFACE | ZEND_ACC_TRAIT | ZEND_ACC_ENUM | ZEND_ACC_EXPLICIT_ABSTRACT_CLASS | ZEND_ACC_IMPLICIT_ABSTRACT_CLASS)) {
		zend_value_error("%s is no class of which there can be objects", ZSTR_VAL(class->name));
		return false;
	}
	if (class->type != ZEND_USER_CLASS) {
		zend_value_error("%s is a class of PHP's own, without properties for columns", ZSTR_VAL(class->name));
		return false;
	}
	for (size_t i = 0; i < from->count; i++) {
		const zend_string *name = from->columns[i].name;
		zend_property_info *property = zend_hash_find_ptr(&class->properties_info, (zend_string *)name);
		if (!property || !(property->flags & ZEND_ACC_PUBLIC) || (property->flags & ZEND_ACC_STATIC) || !SURUS_IS_PLAIN_PROPERTY(property)) {
			zend_value_error("%s has no public property $%s for the column of this name", ZSTR_VAL(class->name), ZSTR_VAL(name));
			return false;
		}
		from->columns[i].property = property;
	}
	return true;
}

static void name_columns(reading *from, void *answer)
{
	from->unique = true;
	for (size_t i = 0; i < from->count; i++) {
		surus_postgres_column found;
		surus_rs_postgres_column(answer, i, &found);
		column *to = &from->columns[i];
		zend_ulong number;
		to->kind = found.kind;
		to->binary = found.binary;
		to->property = NULL;
		to->name = zend_string_init(found.name.ptr, found.name.len, false);
		zend_string_hash_val(to->name);
		from->unique = from->unique && !ZEND_HANDLE_NUMERIC_STR(ZSTR_VAL(to->name), ZSTR_LEN(to->name), number);
		for (size_t j = 0; j < i && from->unique; j++) {
			from->unique = !zend_string_equals(from->columns[j].name, to->name);
		}
	}
}

static bool read_all(reading *from, zval *to, size_t count, surus_postgres_shape shape)
{
	bool (*read)(reading *, zval *) = from->class ? read_object : read_array;
	if (shape == SURUS_SHAPE_ONE) {
		return count == 0 || read(from, to);
	}
	array_init_size(to, count);
	zend_hash_real_init_packed(Z_ARRVAL_P(to));
	for (size_t i = 0; i < count; i++) {
		zval row;
		ZVAL_UNDEF(&row);
		bool is_whole = read(from, &row);
		if (!Z_ISUNDEF(row)) {
			zend_hash_next_index_insert_new(Z_ARRVAL_P(to), &row);
		}
		if (!is_whole) {
			return false;
		}
	}
	return true;
}

bool surus_postgres_build(zval *to, void *answer, const surus_postgres_rows *rows, surus_postgres_shape shape, zend_class_entry *class)
{
	ZVAL_NULL(to);
	if (shape == SURUS_SHAPE_AFFECTED) {
		ZVAL_LONG(to, (zend_long)rows->affected);
		return true;
	}
	column *columns = safe_emalloc(rows->columns, sizeof(column), 0);
	reading from = {.columns = columns, .count = rows->columns, .class = class, .at = rows->data.ptr, .end = rows->data.ptr + rows->data.len};
	name_columns(&from, answer);
	bool is_whole = (!class || fits(&from)) && read_all(&from, to, rows->count, shape);
	for (size_t i = 0; i < from.count; i++) {
		zend_string_release(columns[i].name);
	}
	efree(columns);
	if (!is_whole) {
		zval_ptr_dtor(to);
		ZVAL_NULL(to);
		if (!EG(exception)) {
			zend_throw_error(NULL, "The answer of PostgreSQL is not well-formed");
		}
	}
	return is_whole;
}
