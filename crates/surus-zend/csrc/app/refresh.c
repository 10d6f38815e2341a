/* Before a reload: drops what this process and OPcache have cached about files that have changed.
 *
 * OPcache checks a file's time every `opcache.revalidate_freq` seconds, or never, and a deployment may preserve
 * modification times; the time of the last change to the inode (ctime) cannot be preserved. */
#include "app/refresh.h"
#include "http/request_info.h"
#include "isolate/checked_heap.h"
#include "task/state.h"

#include "Zend/zend_virtual_cwd.h"

static const char code[] =
	"(static function (int $since): void {\n"
	"    $status = function_exists('opcache_get_status') ? @opcache_get_status() : false;\n"
	"    if (!is_array($status)) {\n"
	"        return;\n"
	"    }\n"
	"    ini_set('opcache.validate_timestamps', '1');\n"
	"    foreach (array_keys($status['scripts'] ?? []) as $file) {\n"
	"        $changed = @filectime($file);\n"
	"        opcache_invalidate($file, $changed === false || $changed >= $since);\n"
	"    }\n"
	"})((int) ($_GET['since'] ?? 0));";

surus_outcome surus_run_refresh(surus_task *task)
{
	surus_request_info info;
	surus_fill_request_info(task->exchange, &info);
	SURUS_SET_STACK_LIMITS(task->stack);
	realpath_cache_clean();
	if (php_request_startup() == FAILURE) {
		php_request_shutdown(NULL);
		SG(server_context) = NULL;
		return SURUS_FATAL;
	}
	SURUS_SET_STACK_LIMITS(task->stack);
	virtual_cwd_deactivate();
	zend_first_try {
		zend_eval_stringl((char *)code, sizeof code - 1, NULL, "surus refresh");
	} zend_end_try();
	bool fatal = CG(unclean_shutdown);
	php_request_shutdown(NULL);
	fatal = fatal || CG(unclean_shutdown);
	surus_checked_heap_clear(task->isolate);
	SG(server_context) = NULL;
	return fatal ? SURUS_FATAL : SURUS_OK;
}
