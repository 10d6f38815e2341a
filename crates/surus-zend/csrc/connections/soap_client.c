/* SoapClient takes two references to the resource of its kept-alive connection and releases only one: PHP closes it
 * when the script ends. Here the script does not end with the request, so the other one is released with the object. */
#include "connections/soap_client.h"

static zend_object_handlers handlers;
/* The offset of SoapClient's private property. */
static uint32_t socket_offset;

static void free_client(zend_object *object)
{
	zval *socket = OBJ_PROP(object, socket_offset);
	ZVAL_DEREF(socket);
	/* A clone has a reference, too: the last object releases the one of its property. */
	if (Z_TYPE_P(socket) == IS_RESOURCE && Z_REFCOUNT_P(socket) > 1) {
		zend_list_delete(Z_RES_P(socket));
	}
	zend_object_std_dtor(object);
}

static zend_object *create(zend_class_entry *class)
{
	zend_object *object = zend_objects_new(class);
	object_properties_init(object, class);
	object->handlers = &handlers;
	return object;
}

void surus_soap_client_start(void)
{
	zend_class_entry *class = zend_hash_str_find_ptr(CG(class_table), "soapclient", sizeof "soapclient" - 1);
	const zend_property_info *socket
		= class ? zend_hash_str_find_ptr(&class->properties_info, "httpsocket", sizeof "httpsocket" - 1) : NULL;
	if (!socket || class->create_object) {
		return;
	}
	socket_offset = socket->offset;
	handlers = *zend_get_std_object_handlers();
	handlers.free_obj = free_client;
	class->create_object = create;
}
