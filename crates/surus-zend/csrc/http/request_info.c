/* What PHP knows about a request before any code runs: SG(request_info). */
#include "http/request_info.h"

void surus_fill_request_info(void *exchange, surus_request_info *info)
{
	surus_rs_request_info(exchange, info);
	SG(server_context) = exchange;
	sapi_request_info *request = &SG(request_info);
	request->request_method = info->method.ptr;
	request->query_string = (char *)info->query.ptr;
	request->request_uri = (char *)info->uri.ptr;
	request->path_translated = (char *)info->script.ptr;
	request->content_type = info->content_type.ptr;
	request->content_length = info->content_length > 0 ? info->content_length : 0;
	request->argc = 0;
	request->argv = NULL;
	SG(sapi_headers).http_response_code = 200;
}

void surus_fill_authorization(const surus_request_info *info)
{
	php_handle_auth_data(info->authorization.ptr);
}
