/* Included by every C file of the bridge: PHP, the contract with Rust, and differences between PHP versions. */
#ifndef SURUS_BASE_H
#define SURUS_BASE_H

#include "main/php.h"
#include "main/SAPI.h"
#include "main/php_main.h"
#include "main/php_output.h"
#include "main/php_variables.h"
#include "Zend/zend_exceptions.h"
#include "Zend/zend_fibers.h"
#include "Zend/zend_vm.h"

#include "bridge.h"
#include "versions.h"

static inline surus_str surus_bytes_of(const zend_string *text)
{
	return (surus_str){ZSTR_VAL(text), ZSTR_LEN(text)};
}

#endif
