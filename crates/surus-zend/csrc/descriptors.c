/* PHP's descriptors.
 *
 * select() takes those below 1024 only. Surus keeps its own above, so PHP's are low; where PHP itself has more than a
 * thousand, its functions warn and leave the high ones out of the wait, which then never ends. Here that is an exception. */
#include "internal.h"

#include "ext/spl/spl_exceptions.h"
#include "main/php_network.h"

#include <dlfcn.h>

/* The frame whose call was refused: it goes on to select() before the exception gets its turn. */
static const zend_execute_data *refused;

/* Stands before PHP's own: called where a set for select() is about to lack a descriptor. */
PHPAPI ZEND_COLD void _php_emit_fd_setsize_warning(int max_fd)
{
	surus_task *task = surus_running;
	if (!task || task->script) {
		void (*next)(int) = (void (*)(int))dlsym(RTLD_NEXT, "_php_emit_fd_setsize_warning");
		next(max_fd);
		return;
	}
	refused = EG(current_execute_data);
	if (!EG(exception)) {
		zend_throw_exception_ex(spl_ce_RuntimeException, 0,
			"Descriptor %d cannot be waited for: select() takes those below %d, and this process has more files and"
			" connections of PHP open at once", max_fd, FD_SETSIZE);
	}
}

bool surus_select_is_refused(void)
{
	return refused && EG(exception) && refused == EG(current_execute_data);
}
