#include "task/fiber_stacks.h"

void surus_free_fiber_stacks(void)
{
	zend_objects_store *objects = &EG(objects_store);
	for (uint32_t i = 1; objects->object_buckets && i < objects->top; i++) {
		zend_object *object = objects->object_buckets[i];
		if (!IS_OBJ_VALID(object) || object->ce != zend_ce_fiber || (OBJ_FLAGS(object) & IS_OBJ_FREE_CALLED)) {
			continue;
		}
		zend_fiber *fiber = (zend_fiber *)object;
		if (fiber->context.status == ZEND_FIBER_STATUS_SUSPENDED) {
			zend_fiber_destroy_context(&fiber->context);
			fiber->context.status = ZEND_FIBER_STATUS_DEAD;
		}
	}
}
