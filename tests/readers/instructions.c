/* What lets a program under Callgrind say what is counted: valgrind's requests are macros of C. */
#include <valgrind/callgrind.h>

void begin(void) { CALLGRIND_START_INSTRUMENTATION; }

void from_nothing(void) { CALLGRIND_ZERO_STATS; }

void counted_as(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
