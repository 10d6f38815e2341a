#ifndef SURUS_HTTP_REQUEST_INFO_H
#define SURUS_HTTP_REQUEST_INFO_H

#include "base.h"

/* SG(request_info) from the exchange. */
void surus_fill_request_info(void *exchange, surus_request_info *info);
void surus_fill_authorization(const surus_request_info *info);

#endif
