#ifndef SURUS_CONNECTIONS_SOAP_CLIENT_H
#define SURUS_CONNECTIONS_SOAP_CLIENT_H

#include "base.h"

/* From now on the connection of a SoapClient ends with it. */
void surus_soap_client_start(void);

#endif
