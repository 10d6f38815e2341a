/* Functions in Surus\Internal for Surus\Channels. */
#ifndef SURUS_CHANNELS_H
#define SURUS_CHANNELS_H

#include "base.h"

extern const zend_function_entry surus_channel_functions[];

#endif
