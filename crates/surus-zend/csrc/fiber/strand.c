#include "fiber/strand.h"
#include "fiber/values.h"
#include "task/state.h"

#define VM_STACK_SIZE (16 * 1024)

/* The fields of the engine's structs that say where a piece of code stands. */
#define STRAND_FIELDS(X)                                                                                          \
	X(EG, vm_stack) X(EG, vm_stack_top) X(EG, vm_stack_end) X(EG, vm_stack_page_size) X(EG, current_execute_data)  \
	X(EG, bailout) X(EG, jit_trace_num) X(EG, active_fiber) X(EG, main_fiber_context) X(EG, current_fiber_context) \
	SURUS_STACK_FIELDS(X) X(EG, trampoline)                                                                        \
	X(EG, error_reporting) X(EG, fake_scope) X(EG, in_autoload) X(EG, ticks_count)                                 \
	X(EG, error_handling) X(EG, exception_class) X(EG, exception) X(EG, prev_exception)                            \
	X(EG, opline_before_exception) X(EG, record_errors) X(EG, num_errors) X(EG, errors)                            \
	X(EG, get_gc_buffer) X(EG, filename_override) X(EG, lineno_override) SURUS_OOM_FIELD(X)                        \
	X(CG, current_linking_class) X(CG, delayed_variance_obligations) X(CG, delayed_autoloads) X(CG, unlinked_uses) \
	X(PG, in_user_include) X(PG, in_error_log)                                                                     \
	X(BG, user_compare_fci) X(BG, user_compare_fci_cache) X(BG, serialize_lock) X(BG, serialize) X(BG, unserialize)

typedef struct {
#define DECLARE(owner, field) __typeof__(owner(field)) owner##_##field;
	STRAND_FIELDS(DECLARE)
#undef DECLARE
} values;

struct surus_strand {
	values own;    /* while it does not run */
	values outer;  /* of the request, while it runs */
	zend_fiber_context context; /* what Fibers of PHP code come back to */
};

static void save(values *to)
{
#define SAVE(owner, field) memcpy(&to->owner##_##field, &owner(field), sizeof to->owner##_##field);
	STRAND_FIELDS(SAVE)
#undef SAVE
}

static void load(const values *from)
{
#define LOAD(owner, field) memcpy(&owner(field), &from->owner##_##field, sizeof from->owner##_##field);
	STRAND_FIELDS(LOAD)
#undef LOAD
}

bool surus_strand_make(surus_task *job)
{
	struct surus_strand *strand = calloc(1, sizeof *strand);
	if (!strand) {
		return false;
	}
	zend_vm_stack page = (zend_vm_stack)emalloc(VM_STACK_SIZE);
	page->top = ZEND_VM_STACK_ELEMENTS(page);
	page->end = (zval *)((char *)page + VM_STACK_SIZE);
	page->prev = NULL;
	values *fresh = &strand->own;
	fresh->EG_vm_stack = page;
	fresh->EG_vm_stack_top = page->top;
	fresh->EG_vm_stack_end = page->end;
	fresh->EG_vm_stack_page_size = VM_STACK_SIZE;
	SURUS_FRESH_STACK_LIMITS(fresh, job->stack);
	strand->context.status = ZEND_FIBER_STATUS_RUNNING;
	fresh->EG_main_fiber_context = &strand->context;
	fresh->EG_current_fiber_context = &strand->context;
	fresh->EG_error_reporting = EG(error_reporting);
	fresh->EG_lineno_override = -1;
	job->strand = strand;
	return true;
}

void surus_strand_enter(surus_task *job)
{
	save(&job->strand->outer);
	load(&job->strand->own);
}

void surus_strand_leave(surus_task *job)
{
	save(&job->strand->own);
	load(&job->strand->outer);
}

void surus_strand_end(surus_task *job)
{
	values *own = &job->strand->own;
	if (own->EG_in_autoload) {
		zend_hash_destroy(own->EG_in_autoload);
		FREE_HASHTABLE(own->EG_in_autoload);
	}
	if (own->EG_get_gc_buffer.start) {
		efree(own->EG_get_gc_buffer.start);
	}
	zend_vm_stack page = own->EG_vm_stack;
	while (page) {
		zend_vm_stack previous = page->prev;
		efree(page);
		page = previous;
	}
	*own = (values){0};
}
