/* What holds an object, for messages. */
#ifndef SURUS_SNAPSHOT_HOLDERS_H
#define SURUS_SNAPSHOT_HOLDERS_H

#include "base.h"

/* A path such as "App\Db::$instance->pdo", which the caller releases. */
zend_string *surus_path_to(const zend_object *object);

#endif
