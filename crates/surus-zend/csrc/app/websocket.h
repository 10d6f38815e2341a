/* WebSockets of an application: Surus\WebSocket calls these functions. */
#ifndef SURUS_APP_WEBSOCKET_H
#define SURUS_APP_WEBSOCKET_H

#include "base.h"

extern const zend_function_entry surus_websocket_functions[];

#endif
