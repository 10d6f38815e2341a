#ifndef SURUS_CONNECTIONS_SOAP_CLIENT_H
#define SURUS_CONNECTIONS_SOAP_CLIENT_H

#include "base.h"

/* From now on the connection of a SoapClient is closed with the object. */
void surus_soap_client_start(void);

#endif
