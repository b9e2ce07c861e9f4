/* wasi.c: the C library's system calls, answered inside the module, so that it imports
 * nothing but the host's functions: no files, a clock that stands still, no output. */
#include <stdint.h>

#define CALL(name) __imported_wasi_snapshot_preview1_##name
enum { EBADF = 8, ENOSYS = 52 };

int32_t CALL(args_get)(int32_t a, int32_t b) { return 0; }
int32_t CALL(args_sizes_get)(int32_t n, int32_t size) { return *(uint32_t *)n = *(uint32_t *)size = 0; }
int32_t CALL(environ_get)(int32_t a, int32_t b) { return 0; }
int32_t CALL(environ_sizes_get)(int32_t n, int32_t size) { return *(uint32_t *)n = *(uint32_t *)size = 0; }
int32_t CALL(clock_time_get)(int32_t id, int64_t precision, int32_t out) { return (int32_t)(*(uint64_t *)out = 0); }
int32_t CALL(clock_res_get)(int32_t id, int32_t out) { return (int32_t)(*(uint64_t *)out = 0); }
int32_t CALL(fd_close)(int32_t fd) { return EBADF; }
int32_t CALL(fd_read)(int32_t fd, int32_t v, int32_t n, int32_t out) { return EBADF; }
int32_t CALL(fd_write)(int32_t fd, int32_t v, int32_t n, int32_t out) { return EBADF; }
int32_t CALL(fd_seek)(int32_t fd, int64_t off, int32_t whence, int32_t out) { return EBADF; }
int32_t CALL(fd_fdstat_get)(int32_t fd, int32_t out) { return EBADF; }
int32_t CALL(poll_oneoff)(int32_t a, int32_t b, int32_t n, int32_t out) { return ENOSYS; }
int32_t CALL(sched_yield)(void) { return 0; }
int32_t CALL(random_get)(int32_t at, int32_t n) { return ENOSYS; }
_Noreturn void CALL(proc_exit)(int32_t code) { __builtin_trap(); }
