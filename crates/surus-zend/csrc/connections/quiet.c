#include "connections/quiet.h"

void surus_quiet_begin(surus_quiet *before)
{
	before->reporting = EG(error_reporting);
	ZVAL_COPY_VALUE(&before->handler, &EG(user_error_handler));
	ZVAL_UNDEF(&EG(user_error_handler));
	EG(error_reporting) = 0;
}

static void forget(zend_string **text)
{
	if (*text) {
		zend_string_release(*text);
		*text = NULL;
	}
}

void surus_quiet_end(surus_quiet *before)
{
	if (EG(exception)) {
		zend_clear_exception();
	}
	forget(&PG(last_error_message));
	forget(&PG(last_error_file));
	PG(last_error_type) = 0;
	EG(error_reporting) = before->reporting;
	ZVAL_COPY_VALUE(&EG(user_error_handler), &before->handler);
}
