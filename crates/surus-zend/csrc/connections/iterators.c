/* foreach reads rows without calling a function: through the iterator of the class. It is wrapped here. */
#include "connections/iterators.h"
#include "connections/handles.h"

#include "Zend/zend_interfaces.h"

typedef zend_object_iterator *(*get_iterator)(zend_class_entry *class, zval *object, int by_reference);

static const char *const names[] = {"pdostatement", "mysqli_result"};
#define CLASSES (sizeof names / sizeof *names)

static struct {
	get_iterator get;
	/* Its functions, and a copy in which some are replaced. */
	const zend_object_iterator_funcs *own;
	zend_object_iterator_funcs ours;
} classes[CLASSES];

static size_t of_iterator(const zend_object_iterator *iterator)
{
	size_t i = 0;
	while (iterator->funcs != &classes[i].ours) {
		i++;
	}
	return i;
}

static void move_forward(zend_object_iterator *iterator)
{
	if (surus_handle_claim(Z_OBJ(iterator->data), SURUS_READS)) {
		classes[of_iterator(iterator)].own->move_forward(iterator);
	}
}

static void rewind_it(zend_object_iterator *iterator)
{
	if (surus_handle_claim(Z_OBJ(iterator->data), SURUS_READS)) {
		classes[of_iterator(iterator)].own->rewind(iterator);
	}
}

/* The first row may be read here. */
static zend_object_iterator *get(size_t i, zend_class_entry *class, zval *object, int by_reference)
{
	if (!surus_handle_claim(Z_OBJ_P(object), SURUS_READS)) {
		return NULL;
	}
	zend_object_iterator *iterator = classes[i].get(class, object, by_reference);
	if (!iterator || Z_TYPE(iterator->data) != IS_OBJECT || Z_OBJ(iterator->data) != Z_OBJ_P(object)) {
		return iterator;
	}
	if (classes[i].own != iterator->funcs) {
		classes[i].own = iterator->funcs;
		classes[i].ours = *iterator->funcs;
		classes[i].ours.move_forward = move_forward;
		classes[i].ours.rewind = iterator->funcs->rewind ? rewind_it : NULL;
	}
	iterator->funcs = &classes[i].ours;
	return iterator;
}

static zend_object_iterator *get_first(zend_class_entry *class, zval *object, int by_reference)
{
	return get(0, class, object, by_reference);
}

static zend_object_iterator *get_second(zend_class_entry *class, zval *object, int by_reference)
{
	return get(1, class, object, by_reference);
}

void surus_iterators_start(void)
{
	static const get_iterator ours[CLASSES] = {get_first, get_second};
	for (size_t i = 0; i < CLASSES; i++) {
		zend_class_entry *class = zend_hash_str_find_ptr(CG(class_table), names[i], strlen(names[i]));
		if (class && class->type == ZEND_INTERNAL_CLASS && class->get_iterator) {
			classes[i].get = class->get_iterator;
			class->get_iterator = ours[i];
		}
	}
}
