#ifndef SURUS_HTTP_FORM_FILES_H
#define SURUS_HTTP_FORM_FILES_H

#include "base.h"

void surus_form_files_start(void);
/* Makes a body that the server has in one file the buffer of php://input, unless PHP parses it. */
void surus_adopt_body(void);
/* At the end of a request, however it ends: removes its temporary files from PHP's realpath cache. */
void surus_forget_uploads(surus_task *task);

#endif
