// What the C library of WASI asks for, said line by line.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT(name) __attribute__((export_name(#name))) name
__attribute__((import_module("ganglion"), import_name("open_num"))) double open_num(const char *pointer, int n);
extern char **environ;

int EXPORT(gg_abi_1)(void) { return 0; }

uintptr_t EXPORT(gg_alloc)(size_t size, size_t align) { return (uintptr_t)aligned_alloc(align, (size + align - 1) & -align); }

static long long now(clockid_t id) {
	struct timespec t;
	return clock_gettime(id, &t) ? -1 : t.tv_sec * 1000000000LL + t.tv_nsec;
}

int EXPORT(gg_open)(const char *text, int n) {
	int variables = 0;
	while (environ && environ[variables]) variables++;
	printf("environment %d\n", variables);
	FILE *f = fopen("/etc/passwd", "r");
	int input = getchar() == EOF && errno == EBADF;
	fprintf(stderr, "file %d input %d\n", f == NULL, input);
	char a[8], b[8];
	printf("random %d\n", getentropy(a, sizeof a) == 0 && getentropy(b, sizeof b) == 0 && memcmp(a, b, sizeof a) != 0);
	long long began = now(CLOCK_MONOTONIC);
	struct timespec r = {0, 0}, hour = {3600, 0};
	int unit = clock_getres(CLOCK_MONOTONIC, &r) == 0 && r.tv_nsec == 1000;
	printf("time %d %d\n", time(NULL) > 0, unit);
	int slept = nanosleep(&hour, NULL);
	printf("slept %lld %d\n", (now(CLOCK_MONOTONIC) - began) / 1000000000, slept);
	while (now(CLOCK_REALTIME) % 1000000 > 2000) {}
	return isatty(1) && isatty(2) ? 0 : -1;
}

int EXPORT(gg_plan)(void *frame) {
	static const char mode[] = "/config/mode";
	switch ((int)open_num(mode, sizeof mode - 1)) {
	case 1: exit(3);
	case 2: fputs("on purpose", stderr); abort();
	default: printf("step"); fflush(stdout);
	}
	return 0;
}
