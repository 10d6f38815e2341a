#include "snapshot/objects.h"

/* Classes of extensions whose objects own more than their properties, but only on PHP's heap. docs/snapshots.md lists them, and a
 * test leaves one of each behind. Not here is what counts references to memory of the process, as RegexIterator does to
 * compiled patterns. */
static const char *const known[] = {
	"closure", "generator", "weakreference", "weakmap",
	"arrayobject", "arrayiterator", "recursivearrayiterator", "splobjectstorage", "multipleiterator", "spldoublylinkedlist",
	"splqueue", "splstack", "splheap", "splminheap", "splmaxheap", "splpriorityqueue", "splfixedarray", "splfileinfo",
	"iteratoriterator", "appenditerator", "filteriterator", "callbackfilteriterator", "recursivecallbackfilteriterator",
	"recursivefilteriterator", "parentiterator", "limititerator", "cachingiterator", "recursivecachingiterator", "norewinditerator",
	"infiniteiterator", "recursiveiteratoriterator", "recursivetreeiterator",
	"datetime", "datetimeimmutable", "datetimezone", "dateinterval", "dateperiod",
	"reflectionclass", "reflectionobject", "reflectionenum", "reflectionmethod", "reflectionfunction", "reflectionproperty",
	"reflectionparameter", "reflectionnamedtype", "reflectionuniontype", "reflectionintersectiontype", "reflectionclassconstant",
	"reflectionenumbackedcase", "reflectionenumunitcase", "reflectionattribute", "reflectionextension", "reflectiongenerator",
	"hashcontext",
	"random\\engine\\mt19937", "random\\engine\\pcgoneseq128xslrr64", "random\\engine\\xoshiro256starstar", "random\\engine\\secure",
	"random\\randomizer",
	"surus\\internal\\nativeresponse",
};

#define KNOWN (sizeof known / sizeof *known)
static const zend_class_entry *classes[KNOWN];

void surus_memory_only_start(void)
{
	for (size_t i = 0; i < KNOWN; i++) {
		const zend_class_entry *class = zend_hash_str_find_ptr(CG(class_table), known[i], strlen(known[i]));
		classes[i] = class && class->type == ZEND_INTERNAL_CLASS ? class : NULL;
	}
}

/* The engine's object around an iterator of C code, which may own what it iterates over. */
static const zend_object *iterated_by(const zend_object *object)
{
	if (!zend_string_equals_literal(object->ce->name, "__iterator_wrapper")) {
		return NULL;
	}
	const zval *data = &((const zend_object_iterator *)object)->data;
	return Z_TYPE_P(data) == IS_OBJECT ? Z_OBJ_P(data) : NULL;
}

bool surus_is_memory_only_class(const zend_class_entry *class)
{
	while (class && class->type != ZEND_INTERNAL_CLASS) {
		class = class->parent;
	}
	for (size_t i = 0; class && i < KNOWN; i++) {
		if (classes[i] == class) {
			return true;
		}
	}
	return false;
}

bool surus_is_memory_only(const zend_object *object)
{
	if (object->handlers->free_obj == zend_object_std_dtor) {
		return true;
	}
	const zend_object *iterated = iterated_by(object);
	if (iterated && iterated != object) {
		object = iterated;
		if (object->handlers->free_obj == zend_object_std_dtor) {
			return true;
		}
	}
	return surus_is_memory_only_class(object->ce);
}
