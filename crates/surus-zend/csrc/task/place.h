#ifndef SURUS_TASK_PLACE_H
#define SURUS_TASK_PLACE_H

#include "base.h"

/* "PDO::query() at /app/index.php:7": the innermost function of a stack of frames and the line that has called it. Returns
 * the length of the text. Allocates nothing. */
size_t surus_place_of(const zend_execute_data *frame, char *text, size_t size);

#endif
