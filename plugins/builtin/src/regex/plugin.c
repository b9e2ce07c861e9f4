/* regex: the whole text matches a regular expression. */
#include "engine.h"
#include "pattern.h"

GG_PLUGIN("manifest.json")

GG_OPEN {
	static char text[16 << 10];
	int32_t n = gg_string("/config/pattern", text, sizeof text);
	if (n <= 0) return gg_fail("regex: the pattern is empty or above 16 KiB");
	pattern(text, (uint32_t)n, 0);
	uint32_t rule = make_rule(0);
	engine_open(rule);
	return opened();
}
