/* Every difference between the PHP versions that Surus is built against (8.2 to 8.5), and nothing else; those between
 * layouts of hidden structs are in hidden_layout.h. */
#ifndef SURUS_VERSIONS_H
#define SURUS_VERSIONS_H

#include "main/php_version.h"

#if PHP_VERSION_ID < 80200
#error "surus needs PHP 8.2 or newer"
#endif

/* 8.3 and newer check the C stack against these bounds, unless zend.max_allowed_stack_size is -1. They must describe the
 * running stack; for a request that was parked inside a PHP Fiber, this is the stack of that Fiber. */
#if PHP_VERSION_ID >= 80300
#define SURUS_STACK_FIELDS(X) X(EG, stack_base) X(EG, stack_limit)
#define SURUS_PUT_STACK_LIMITS(base_field, limit_field, stack)                                    \
	do {                                                                                        \
		bool checked = EG(max_allowed_stack_size) != ZEND_MAX_ALLOWED_STACK_SIZE_UNCHECKED;     \
		base_field = checked ? (stack).top : NULL;                                              \
		limit_field = checked ? (stack).base + 32 * 1024 : NULL;                                \
	} while (0)
#define SURUS_SET_STACK_LIMITS(stack) SURUS_PUT_STACK_LIMITS(EG(stack_base), EG(stack_limit), stack)
#define SURUS_FRESH_STACK_LIMITS(values, stack) SURUS_PUT_STACK_LIMITS((values)->EG_stack_base, (values)->EG_stack_limit, stack)
#else
#define SURUS_STACK_FIELDS(X)
#define SURUS_SET_STACK_LIMITS(stack) ((void)(stack))
#define SURUS_FRESH_STACK_LIMITS(values, stack) ((void)(values), (void)(stack))
#endif

/* OPcache up to 8.4 accepts only SAPI names that it knows, checked at module startup. */
#if PHP_VERSION_ID >= 80500
#define SURUS_STARTUP_NAME "surus"
#else
#define SURUS_STARTUP_NAME "cli-server"
#endif

#if PHP_VERSION_ID >= 80500
#define SURUS_SAPI_EXTRA .pre_request_init = NULL,
#else
#define SURUS_SAPI_EXTRA
#endif

/* 8.4 is the last version with disable_classes and its function. */
#define SURUS_HAS_DISABLE_CLASSES (PHP_VERSION_ID < 80500)

/* The newest releases unwind a request that has hit its memory limit instead of leaving it by longjmp, and set a mark
 * that stops further PHP code. The mark belongs to that request. */
#ifdef ZEND_HAS_OOM
#define SURUS_OOM_FIELD(X) X(EG, delayed_oom)
#define SURUS_HAS_OOM() ZEND_HAS_OOM()
#define SURUS_CLEAR_OOM() (EG(delayed_oom).state = ZEND_OOM_STATE_NONE)
#else
#define SURUS_OOM_FIELD(X)
#define SURUS_HAS_OOM() false
#define SURUS_CLEAR_OOM() ((void)0)
#endif

/* Up to 8.3, php-cli's cache of patterns is on the heap of its only request. */
#if PHP_VERSION_ID >= 80400
#define SURUS_PCRE_CACHE_IS_OF_REQUEST(globals) ((void)(globals), false)
#else
#define SURUS_PCRE_CACHE_IS_OF_REQUEST(globals) ((globals)->per_request_cache)
#endif

/* The state that mt_srand() seeds: on the heap up to 8.3. */
#if PHP_VERSION_ID >= 80400
#define SURUS_RANDOM_STATE() ((void *)&RANDOM_G(mt19937))
#define SURUS_RANDOM_SIZE sizeof(php_random_status_state_mt19937)
#else
#define SURUS_RANDOM_STATE() (RANDOM_G(mt19937)->state)
#define SURUS_RANDOM_SIZE (php_random_algo_mt19937.state_size)
#endif

/* The descriptor of /dev/urandom, which the process keeps: since 8.4 no other file sees it. */
#if PHP_VERSION_ID >= 80400
#define SURUS_RANDOM_DESCRIPTOR(X)
#else
#define SURUS_RANDOM_DESCRIPTOR(X) X(RANDOM_G(random_fd));
#endif

/* What is left of numbers that were converted, to be used for the next one: static up to some 8.3, then the executor's. */
#ifdef ZEND_STRTOD_K_MAX
#define SURUS_STRTOD_STATE(X) X(EG(strtod_state));
#else
#define SURUS_STRTOD_STATE(X)
#endif

/* Properties with hooks must not be written directly into their slot. */
#if PHP_VERSION_ID >= 80400
#define SURUS_IS_PLAIN_PROPERTY(property) ((property)->hooks == NULL)
#else
#define SURUS_IS_PLAIN_PROPERTY(property) true
#endif

/* More standard handlers of settings, and the size of what they store. */
#if PHP_VERSION_ID >= 80400
#define SURUS_STR_HANDLERS {OnUpdateStr, sizeof(zend_string *)}, {OnUpdateStrNotEmpty, sizeof(zend_string *)},
#else
#define SURUS_STR_HANDLERS
#endif

/* What mb_output_handler() keeps between calls: type and name of fields of mbstring's globals. */
#if PHP_VERSION_ID >= 80300
#define SURUS_MB_OUTPUT(X) X(bool, outconv_enabled) X(unsigned int, outconv_state)
#define SURUS_MB_HAS_OUTPUT(globals) ((globals)->outconv_enabled)
#else
#define SURUS_MB_OUTPUT(X) X(mbfl_buffer_converter *, outconv)
#define SURUS_MB_HAS_OUTPUT(globals) ((globals)->outconv != NULL)
#endif

#endif
