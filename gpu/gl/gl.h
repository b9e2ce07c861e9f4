// What Go calls of OpenGL, in C. No header of OpenGL or EGL is needed to build this and
// nothing is linked: entry points are found when a context is made.
//
// A struct ggl is one context. It is made, used and closed by one thread.
#ifndef GANGLION_GL_H
#define GANGLION_GL_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && !defined(_WIN64)
#define GGL_CALL __stdcall
#else
#define GGL_CALL
#endif

typedef unsigned int GLenum;
typedef unsigned int GLuint;
typedef unsigned int GLbitfield;
typedef int GLint;
typedef int GLsizei;
typedef unsigned char GLboolean;
typedef unsigned char GLubyte;
typedef char GLchar;
typedef ptrdiff_t GLintptr;
typedef ptrdiff_t GLsizeiptr;
typedef int64_t GLint64;
typedef uint64_t GLuint64;
typedef struct ggl_sync *GLsync;

// GGL_NEEDED lists the entry points that OpenGL 4.3 and OpenGL ES 3.1 both have:
// X(result, name without gl, parameters).
#define GGL_NEEDED(X)                                                                      \
	X(const GLubyte *, GetString, (GLenum name))                                           \
	X(const GLubyte *, GetStringi, (GLenum name, GLuint index))                            \
	X(GLenum, GetError, (void))                                                            \
	X(void, GetIntegerv, (GLenum name, GLint *data))                                       \
	X(void, GetInteger64v, (GLenum name, GLint64 *data))                                   \
	X(void, GetIntegeri_v, (GLenum name, GLuint index, GLint *data))                       \
	X(void, GenBuffers, (GLsizei n, GLuint *buffers))                                      \
	X(void, DeleteBuffers, (GLsizei n, const GLuint *buffers))                             \
	X(void, BindBuffer, (GLenum target, GLuint buffer))                                    \
	X(void, BindBufferRange,                                                               \
	  (GLenum target, GLuint index, GLuint buffer, GLintptr offset, GLsizeiptr size))      \
	X(void, BufferData, (GLenum target, GLsizeiptr size, const void *data, GLenum usage))  \
	X(void, BufferSubData,                                                                 \
	  (GLenum target, GLintptr offset, GLsizeiptr size, const void *data))                 \
	X(void *, MapBufferRange,                                                              \
	  (GLenum target, GLintptr offset, GLsizeiptr length, GLbitfield access))              \
	X(GLboolean, UnmapBuffer, (GLenum target))                                             \
	X(GLuint, CreateShader, (GLenum type))                                                 \
	X(void, ShaderSource,                                                                  \
	  (GLuint shader, GLsizei n, const GLchar *const *text, const GLint *length))          \
	X(void, CompileShader, (GLuint shader))                                                \
	X(void, GetShaderiv, (GLuint shader, GLenum name, GLint *value))                       \
	X(void, GetShaderInfoLog, (GLuint shader, GLsizei max, GLsizei *length, GLchar *log))  \
	X(void, DeleteShader, (GLuint shader))                                                 \
	X(GLuint, CreateProgram, (void))                                                       \
	X(void, AttachShader, (GLuint program, GLuint shader))                                 \
	X(void, DetachShader, (GLuint program, GLuint shader))                                 \
	X(void, ProgramParameteri, (GLuint program, GLenum name, GLint value))                 \
	X(void, LinkProgram, (GLuint program))                                                 \
	X(void, GetProgramiv, (GLuint program, GLenum name, GLint *value))                     \
	X(void, GetProgramInfoLog, (GLuint program, GLsizei max, GLsizei *length, GLchar *log)) \
	X(void, GetProgramBinary,                                                              \
	  (GLuint program, GLsizei max, GLsizei *length, GLenum *format, void *binary))        \
	X(void, ProgramBinary,                                                                 \
	  (GLuint program, GLenum format, const void *binary, GLsizei length))                 \
	X(void, DeleteProgram, (GLuint program))                                               \
	X(void, UseProgram, (GLuint program))                                                  \
	X(void, DispatchCompute, (GLuint x, GLuint y, GLuint z))                               \
	X(void, MemoryBarrier, (GLbitfield barriers))                                          \
	X(GLsync, FenceSync, (GLenum condition, GLbitfield flags))                             \
	X(GLenum, ClientWaitSync, (GLsync sync, GLbitfield flags, GLuint64 timeout))           \
	X(void, DeleteSync, (GLsync sync))                                                     \
	X(void, Flush, (void))                                                                 \
	X(void, Finish, (void))                                                                \
	X(void, GenTextures, (GLsizei n, GLuint *textures))                                    \
	X(void, DeleteTextures, (GLsizei n, const GLuint *textures))                           \
	X(void, ActiveTexture, (GLenum unit))                                                  \
	X(void, BindTexture, (GLenum target, GLuint texture))                                  \
	X(void, GenQueries, (GLsizei n, GLuint *queries))                                      \
	X(void, DeleteQueries, (GLsizei n, const GLuint *queries))                             \
	X(void, BeginQuery, (GLenum target, GLuint query))                                     \
	X(void, EndQuery, (GLenum target))                                                     \
	X(void, GetQueryiv, (GLenum target, GLenum name, GLint *value))

// GGL_OPTIONAL lists those of later versions and of extensions, whose names differ.
#define GGL_OPTIONAL(X)                                                                    \
	X(void, GetQueryObjectui64v, (GLuint query, GLenum name, GLuint64 *value))             \
	X(GLenum, GetGraphicsResetStatus, (void))                                              \
	X(void, BufferStorage, (GLenum target, GLsizeiptr size, const void *data, GLbitfield f)) \
	X(void, ClearBufferData,                                                               \
	  (GLenum target, GLenum inner, GLenum format, GLenum type, const void *data))         \
	X(void, TexBufferRange,                                                                \
	  (GLenum target, GLenum format, GLuint buffer, GLintptr offset, GLsizeiptr size))     \
	X(void, GetUnsignedBytei_v, (GLenum target, GLuint index, GLubyte *data))

struct ggl {
#define X(result, name, params) result(GGL_CALL *name) params;
	GGL_NEEDED(X)
	GGL_OPTIONAL(X) // NULL until ggl_find
#undef X
	void *(*get)(const char *name);
	int resets;        // the context was made to tell of resets
	char place[128];   // where the device was found
	void *platform[3]; // display, context, surface (EGL); window, context, device context (WGL)
};

// Results of the calls below.
enum {
	GGL_OK,
	GGL_TIMEOUT,
	GGL_OUT_OF_MEMORY,
	GGL_LOST,
	GGL_REFUSED, // another error of OpenGL; see code
};

// A context is asked for by language and version.
struct ggl_version {
	int es, major, minor;
};

// The platform (egl.c, wgl.c). ggl_places counts the places where a context may be made,
// 0 and a reason when there is no OpenGL here. ggl_open makes a context of at least the
// version current on this thread; it gives NULL and a reason when there is none.
int ggl_places(char *why, size_t size);
struct ggl *ggl_open(int place, struct ggl_version v, char *why, size_t size);
void ggl_close(struct ggl *g);
// ggl_finish sleeps until everything has ended.
void ggl_finish(struct ggl *g);
// ggl_pump lets the window system have its say; it is called between calls.
void ggl_pump(struct ggl *g);

// ggl_now is the host's clock in nanoseconds.
uint64_t ggl_now(void);

// ggl_load fills in the needed entry points by g->get and gives the name of the first
// that is missing, or NULL. ggl_find fills in an optional one by the name that the
// version or an extension gives it. Only what is listed is asked for by name: a getter
// may answer a name that the context does not know with a function that does nothing.
const char *ggl_load(struct ggl *g);
enum { GGL_CLEAR, GGL_QUERY, GGL_RESET, GGL_STORAGE, GGL_TEXELS, GGL_UUID };
int ggl_find(struct ggl *g, int function, const char *name);

const char *ggl_string(struct ggl *g, GLenum name);
const char *ggl_extension(struct ggl *g, GLuint index);
int64_t ggl_integer(struct ggl *g, GLenum name);
int64_t ggl_integer_at(struct ggl *g, GLenum name, GLuint index);
// ggl_uuid writes the 16 bytes of the device's and of the driver's UUID.
void ggl_uuid(struct ggl *g, unsigned char *device, unsigned char *driver);
// ggl_timer_works tries an elapsed-time query.
int ggl_timer_works(struct ggl *g);

// ggl_buffer_new makes a buffer of zeros. With map it stays mapped, and *map is where.
int ggl_buffer_new(struct ggl *g, GLsizeiptr size, GLenum usage, GLuint *buffer, void **map, GLenum *code);
int ggl_buffer_write(struct ggl *g, GLuint buffer, GLintptr offset, GLsizeiptr n, const void *data, GLenum *code);
int ggl_buffer_read(struct ggl *g, GLuint buffer, GLintptr offset, GLsizeiptr n, void *data, GLenum *code);
void ggl_buffer_delete(struct ggl *g, GLuint buffer);

// ggl_texture_new makes a buffer texture of four words a texel of a part of a buffer.
int ggl_texture_new(struct ggl *g, GLuint buffer, GLintptr offset, GLsizeiptr size, GLuint *texture, GLenum *code);
void ggl_textures_delete(struct ggl *g, int n, const GLuint *textures);

// ggl_program_compile gives 0 and the driver's words in log when the text is refused.
GLuint ggl_program_compile(struct ggl *g, const char *text, int length, int keep, char *log, int size);
// ggl_program_load gives 0 when the driver does not take the binary.
GLuint ggl_program_load(struct ggl *g, GLenum format, const void *binary, int length);
int ggl_program_size(struct ggl *g, GLuint program);
int ggl_program_save(struct ggl *g, GLuint program, void *binary, int size, GLenum *format);
void ggl_program_delete(struct ggl *g, GLuint program);

enum { GGL_BINDINGS = 16 };

struct ggl_command {
	GLuint program;
	GLuint bindings;
	GLuint barrier; // 1: before this command
	GLuint groups[3];
	GLuint texture[GGL_BINDINGS]; // bound instead of the buffer, 0 = none
	GLuint buffer[GGL_BINDINGS];
	GLintptr offset[GGL_BINDINGS];
	GLsizeiptr size[GGL_BINDINGS];
	GLintptr params; // in the buffer of parameters
	GLsizeiptr param_bytes;
};

// How the commands of a submission are timed.
enum {
	GGL_UNTIMED,
	GGL_QUERIES, // by the driver's elapsed-time queries
	GGL_CLOCK,   // by the host's clock: each command is finished before the next
};

struct ggl_submission {
	const struct ggl_command *commands;
	int n;
	GLuint params; // uniform buffer with all parameter blocks, 0 = none
	GLbitfield barriers, end_barriers; // of commands with a barrier, and behind the last
	int timing;
	GLuint *queries;  // n
	GLuint64 *nanos;  // n, written under GGL_CLOCK
};

// ggl_submit replays commands and leaves a fence behind them.
int ggl_submit(struct ggl *g, const struct ggl_submission *s, GLsync *fence, GLenum *code);
// ggl_wait sleeps until the fence has passed, at most nanos.
int ggl_wait(struct ggl *g, GLsync fence, uint64_t nanos, GLenum *code);
void ggl_fence_delete(struct ggl *g, GLsync fence);
void ggl_queries_new(struct ggl *g, int n, GLuint *queries);
void ggl_queries_delete(struct ggl *g, int n, const GLuint *queries);
// ggl_times reads elapsed-time queries that have ended.
void ggl_times(struct ggl *g, int n, const GLuint *queries, GLuint64 *nanos);
// ggl_reset_status is 0 while the context is alive.
GLenum ggl_reset_status(struct ggl *g);

#endif
