/* What runs and what is loaded, for people who inspect a running server. Read from the engine's structs, without
 * allocation on PHP's heap. */
#include "base.h"
#include "isolate/isolate.h"
#include "task/place.h"
#include "task/state.h"

size_t surus_task_place(surus_task *task, char *text, size_t size)
{
	surus_isolate_enter(task->isolate);
	return surus_place_of(task->frame, text, size);
}

void surus_isolate_files(surus_isolate *isolate, void *list)
{
	surus_isolate_enter(isolate);
	zend_string *file;
	ZEND_HASH_MAP_FOREACH_STR_KEY(&EG(included_files), file) {
		if (file) {
			surus_rs_file(list, surus_bytes_of(file));
		}
	} ZEND_HASH_FOREACH_END();
}
