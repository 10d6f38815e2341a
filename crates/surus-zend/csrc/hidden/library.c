/* Hidden state of extensions (old-style module globals, found through their ini entries), and state of libpcre2 and
 * libxml2 that PHP code can observe. */
#include "hidden/library.h"
#include "hidden/find.h"
#include "hidden/hidden.h"
#include "hidden/layout.h"
#include "hidden/probe.h"

#include "ext/pcre/php_pcre.h"

#include <dlfcn.h>

/* From ext/pcre/php_pcre.c: the number of pairs in the match data that is made at startup. */
#define PREALLOCATED_PAIRS 32

/* libpcre2-8 is loaded with libphp; linking with it would require its development files. */
static pcre2_match_data *(*match_data_create)(uint32_t, pcre2_general_context *);
static void (*match_data_free)(pcre2_match_data *);
static pcre2_match_context *(*match_context_create)(pcre2_general_context *);
static void (*match_context_free)(pcre2_match_context *);
static void (*xml_reset_last_error)(void);

static pcre2_match_data **match_data;
static pcre2_match_context **match_context;

static bool is_loaded(const char *module)
{
	return zend_hash_str_exists(&module_registry, module, strlen(module));
}

static bool find_pcre(surus_finder *finder)
{
	match_data_create = dlsym(RTLD_DEFAULT, "pcre2_match_data_create_8");
	match_data_free = dlsym(RTLD_DEFAULT, "pcre2_match_data_free_8");
	match_context_create = dlsym(RTLD_DEFAULT, "pcre2_match_context_create_8");
	match_context_free = dlsym(RTLD_DEFAULT, "pcre2_match_context_free_8");
	if (!match_data_create || !match_data_free || !match_context_create || !match_context_free) {
		return surus_not_found(finder, "pcre", "libpcre2-8 is not loaded as a shared object");
	}

	zend_string *regex = zend_string_init("/s/", 3, 0);
	pcre_cache_entry *compiled = pcre_get_compiled_regex_cache(regex);
	zend_string_release(regex);
	surus_probe flag, data, context;
	if (!compiled || !surus_probe_open(&flag, "libphp") || !surus_probe_open(&data, "libphp")
		|| !surus_probe_open(&context, "libphp")) {
		return surus_not_found(finder, "pcre", "it cannot be probed");
	}
	pcre2_match_data *shared = NULL;
	for (int i = 0; i < 4; i++) {
		surus_probe_keep_value(&flag, 1, false);
		shared = php_pcre_create_match_data(0, php_pcre_pce_re(compiled));
		surus_probe_keep_value(&flag, 1, true);
		surus_probe_keep_value(&data, 8, (unsigned long)shared);
		php_pcre_free_match_data(shared);
	}
	surus_probe_keep_value(&context, 8, (unsigned long)php_pcre_mctx());
	bool *used = surus_probe_only(&flag);
	match_data = surus_probe_only(&data);
	match_context = surus_probe_only(&context);
	surus_probe_close(&flag);
	surus_probe_close(&data);
	surus_probe_close(&context);
	if (!used || !match_data || !match_context) {
		return surus_not_found(finder, "pcre", "no variables follow php_pcre_create_match_data()");
	}

	/* Check that PHP reads these variables. */
	pcre2_match_data *other_data = match_data_create(PREALLOCATED_PAIRS, php_pcre_gctx());
	pcre2_match_context *own_context = *match_context, *other_context = match_context_create(php_pcre_gctx());
	*match_data = other_data;
	*match_context = other_context;
	pcre2_match_data *got = php_pcre_create_match_data(0, php_pcre_pce_re(compiled));
	bool follows = got == other_data && php_pcre_mctx() == other_context && *used;
	php_pcre_free_match_data(got);
	*match_data = shared;
	*match_context = own_context;
	match_data_free(other_data);
	match_context_free(other_context);
	if (!follows) {
		return surus_not_found(finder, "pcre", "PHP does not use the variables that were found");
	}
	/* A callback of preg_replace_callback() runs while the match data is in use, so each isolate needs its own; the
	 * context contains pcre.backtrack_limit, pcre.recursion_limit and pcre.jit. */
	return surus_found(finder, "pcre mdata_used", used, sizeof *used, SURUS_INIT_ZERO)
		&& surus_found(finder, "pcre mdata", match_data, sizeof *match_data, SURUS_INIT_IMAGE)
		&& surus_found(finder, "pcre mctx", match_context, sizeof *match_context, SURUS_INIT_IMAGE);
}

/* An ini entry's second argument is the address of the globals that it sets, its first the offset of the member. */
static bool entry_sets(const char *name, void **globals, size_t offset)
{
	zend_ini_entry *entry = surus_ini_entry(name);
	if (!entry || !entry->mh_arg2 || (size_t)entry->mh_arg1 != offset || (*globals && *globals != entry->mh_arg2)) {
		return false;
	}
	*globals = entry->mh_arg2;
	return true;
}

static bool find_filter(surus_finder *finder)
{
	if (!is_loaded("filter")) {
		return true;
	}
	void *globals = NULL;
	if (!entry_sets("filter.default", &globals, offsetof(surus_filter_globals, default_filter))) {
		return surus_not_found(finder, "filter_globals", "filter.default is another kind of setting");
	}
	const surus_filter_globals *filter = globals;
	if (filter->default_filter < 0x0100 || filter->default_filter > 0x0410
		|| (!Z_ISUNDEF(filter->get_array) && Z_TYPE(filter->get_array) != IS_ARRAY)) {
		return surus_not_found(finder, "filter_globals", "its layout is another one");
	}
	return surus_found(finder, "filter_globals", globals, sizeof(surus_filter_globals), SURUS_INIT_IMAGE)
		&& surus_is_of_request(finder);
}

static bool find_assert(surus_finder *finder)
{
	void *globals = NULL;
	if (!entry_sets("assert.active", &globals, offsetof(surus_assert_globals, active))
		|| !entry_sets("assert.bail", &globals, offsetof(surus_assert_globals, bail))
		|| !entry_sets("assert.warning", &globals, offsetof(surus_assert_globals, warning))
		|| !entry_sets("assert.exception", &globals, offsetof(surus_assert_globals, exception))) {
		return surus_not_found(finder, "assert_globals", "its layout is another one");
	}
	const surus_assert_globals *assert = globals;
	if (assert->active != (bool)zend_ini_long("assert.active", 13, 0)
		|| assert->exception != (bool)zend_ini_long("assert.exception", 16, 0) || !Z_ISUNDEF(assert->callback)) {
		return surus_not_found(finder, "assert_globals", "its values are not those of the settings");
	}
	/* Zeros: the handler of assert.callback frees the name that it finds there. */
	return surus_found(finder, "assert_globals", globals, sizeof(surus_assert_globals), SURUS_INIT_ZERO)
		&& surus_is_of_request(finder);
}

/* psheader in iptc.c: the header, with its length, that iptcembed() writes to output whose handler may wait. It is
 * found by its contents; if PHP has no such variable, there is nothing to swap. */
static bool is_photoshop_header(const void *address, void *context)
{
	static const char text[] = "Photoshop 3.0";
	const surus_probe *probe = context;
	const char *at = address;
	return surus_probe_covers(probe, at, SURUS_IPTC_HEADER) && memcmp(at, "\xFF\xED", 2) == 0 && memcmp(at + 4, text, sizeof text) == 0;
}

static bool find_iptc(surus_finder *finder)
{
	surus_probe probe;
	if (!surus_probe_open(&probe, "libphp")) {
		return surus_not_found(finder, "iptc", "it cannot be probed");
	}
	surus_probe_keep(&probe, 1, is_photoshop_header, &probe);
	void *header = surus_probe_only(&probe);
	surus_probe_close(&probe);
	return !header || (surus_found(finder, "iptc", header, SURUS_IPTC_HEADER, SURUS_INIT_IMAGE) && surus_is_of_request(finder));
}

static bool find_soap(surus_finder *finder)
{
	zend_module_entry *module = zend_hash_str_find_ptr(&module_registry, "soap", 4);
	if (!module || module->globals_size) {
		return true; /* not loaded, or a region already */
	}
	void *globals = NULL;
	if (!entry_sets("soap.wsdl_cache_enabled", &globals, offsetof(surus_soap_globals, cache_enabled))
		|| !entry_sets("soap.wsdl_cache_dir", &globals, offsetof(surus_soap_globals, cache_dir))
		|| !entry_sets("soap.wsdl_cache_ttl", &globals, offsetof(surus_soap_globals, cache_ttl))
		|| !entry_sets("soap.wsdl_cache_limit", &globals, offsetof(surus_soap_globals, cache_limit))) {
		return surus_not_found(finder, "soap_globals", "its layout is another one");
	}
	const surus_soap_globals *soap = globals;
	if (soap->cache_ttl != zend_ini_long("soap.wsdl_cache_ttl", 19, 0) || soap->typemap || soap->sdl
		|| zend_hash_num_elements(&soap->defEnc) == 0 || zend_hash_num_elements(&soap->defEncNs) == 0) {
		return surus_not_found(finder, "soap_globals", "its values are not those after startup");
	}
	return surus_found(finder, "soap_globals", globals, sizeof(surus_soap_globals), SURUS_INIT_IMAGE)
		&& surus_is_of_request(finder);
}

/* libxml2 keeps these variables per thread; functions return their addresses. libxml_use_internal_errors(),
 * libxml_get_last_error() and XSLTProcessor::importStylesheet() change them. Names and sizes are those of libxml2's
 * public globals. */
static const struct {
	const char *function;
	size_t size;
	surus_region_init init;
} xml_state[] = {
	{"__xmlLastError", 88, SURUS_INIT_ZERO}, /* sizeof(xmlError); its strings are malloc'ed */
	{"__xmlStructuredError", sizeof(void *), SURUS_INIT_IMAGE},
	{"__xmlStructuredErrorContext", sizeof(void *), SURUS_INIT_IMAGE},
	{"__xmlGenericError", sizeof(void *), SURUS_INIT_IMAGE},
	{"__xmlGenericErrorContext", sizeof(void *), SURUS_INIT_IMAGE},
	{"__xmlSubstituteEntitiesDefaultValue", sizeof(int), SURUS_INIT_IMAGE},
	{"__xmlLoadExtDtdDefaultValue", sizeof(int), SURUS_INIT_IMAGE},
	{"__xmlKeepBlanksDefaultValue", sizeof(int), SURUS_INIT_IMAGE},
	{"__xmlIndentTreeOutput", sizeof(int), SURUS_INIT_IMAGE},
	/* PHP's stream functions, which the start of a request sets and its end removes. */
	{"__xmlParserInputBufferCreateFilenameValue", sizeof(void *), SURUS_INIT_IMAGE},
	{"__xmlOutputBufferCreateFilenameValue", sizeof(void *), SURUS_INIT_IMAGE},
};

static bool find_libxml(surus_finder *finder)
{
	if (!is_loaded("libxml")) {
		return true;
	}
	for (size_t i = 0; i < sizeof xml_state / sizeof *xml_state; i++) {
		void *(*address)(void) = dlsym(RTLD_DEFAULT, xml_state[i].function);
		if (!address) {
			return surus_not_found(finder, xml_state[i].function, "libxml2 does not export it");
		}
		if (!surus_found(finder, xml_state[i].function, address(), xml_state[i].size, xml_state[i].init)) {
			return false;
		}
		surus_is_of_request(finder);
	}
	xml_reset_last_error = dlsym(RTLD_DEFAULT, "xmlResetLastError");
	return true;
}

bool surus_find_library(surus_finder *finder)
{
	return find_pcre(finder) && find_filter(finder) && find_assert(finder) && find_iptc(finder)
		&& find_soap(finder) && find_libxml(finder);
}

bool surus_library_create(void)
{
	*match_data = match_data_create(PREALLOCATED_PAIRS, php_pcre_gctx());
	*match_context = match_context_create(php_pcre_gctx());
	return *match_data && *match_context;
}

void surus_library_destroy(void)
{
	match_data_free(*match_data);
	match_context_free(*match_context);
	*match_data = NULL;
	*match_context = NULL;
	if (xml_reset_last_error) {
		xml_reset_last_error();
	}
}
