/* WebSockets of an application: Surus\WebSocket calls these functions. */
#ifndef SURUS_APP_WEBSOCKET_H
#define SURUS_APP_WEBSOCKET_H

#include "base.h"

extern const zend_function_entry surus_websocket_functions[];

/* ZEND_TRY_ASSIGN_REF_BOOL() of PHP 8.2 makes a property with a type always true. */
static inline void surus_assign_bool(zval *to, bool value)
{
	if (value) {
		ZEND_TRY_ASSIGN_REF_TRUE(to);
	} else {
		ZEND_TRY_ASSIGN_REF_FALSE(to);
	}
}

#endif
