//go:build linux || windows

#include "gl.h"

#include <string.h>

// Names of OpenGL that are used here, from the registry's gl.xml.
enum {
	COMPUTE_SHADER = 0x91B9,
	SHADER_STORAGE_BUFFER = 0x90D2,
	UNIFORM_BUFFER = 0x8A11,
	COPY_READ_BUFFER = 0x8F36,
	COPY_WRITE_BUFFER = 0x8F37,
	MAP_READ_BIT = 0x0001,
	MAP_WRITE_BIT = 0x0002,
	MAP_INVALIDATE_BUFFER_BIT = 0x0008,
	MAP_PERSISTENT_BIT = 0x0040,
	MAP_COHERENT_BIT = 0x0080,
	CLIENT_STORAGE_BIT = 0x0200,
	COMPILE_STATUS = 0x8B81,
	LINK_STATUS = 0x8B82,
	PROGRAM_BINARY_RETRIEVABLE_HINT = 0x8257,
	PROGRAM_BINARY_LENGTH = 0x8741,
	TEXTURE_BUFFER = 0x8C2A,
	TEXTURE0 = 0x84C0,
	RGBA32UI = 0x8D70,
	R32UI = 0x8236,
	RED_INTEGER = 0x8D94,
	UNSIGNED_INT = 0x1405,
	SYNC_GPU_COMMANDS_COMPLETE = 0x9117,
	SYNC_FLUSH_COMMANDS_BIT = 0x0001,
	ALREADY_SIGNALED = 0x911A,
	TIMEOUT_EXPIRED = 0x911B,
	CONDITION_SATISFIED = 0x911C,
	TIME_ELAPSED = 0x88BF,
	QUERY_COUNTER_BITS = 0x8864,
	QUERY_RESULT = 0x8866,
	OUT_OF_MEMORY = 0x0505,
	CONTEXT_LOST = 0x0507,
	DEVICE_UUID = 0x9597,
	DRIVER_UUID = 0x9598,
};

const char *ggl_load(struct ggl *g) {
#define X(result, name, params)                                       \
	if (!(g->name = (result(GGL_CALL *) params)g->get("gl" #name))) \
		return "gl" #name;
	GGL_NEEDED(X)
#undef X
	return NULL;
}

int ggl_find(struct ggl *g, int function, const char *name) {
	void *p = g->get(name);
	switch (function) {
	case GGL_CLEAR:
		*(void **)&g->ClearBufferData = p;
		break;
	case GGL_QUERY:
		*(void **)&g->GetQueryObjectui64v = p;
		break;
	case GGL_RESET:
		*(void **)&g->GetGraphicsResetStatus = p;
		break;
	case GGL_STORAGE:
		*(void **)&g->BufferStorage = p;
		break;
	case GGL_TEXELS:
		*(void **)&g->TexBufferRange = p;
		break;
	case GGL_UUID:
		*(void **)&g->GetUnsignedBytei_v = p;
		break;
	}
	return p != NULL;
}

// failure empties the list of errors and says what the first of them means.
static int failure(struct ggl *g, GLenum *code) {
	GLenum first = g->GetError();
	// A lost context may repeat its error for ever.
	for (int i = 0; i < 16 && first && g->GetError(); i++) {
	}
	*code = first;
	switch (first) {
	case 0:
		return GGL_OK;
	case OUT_OF_MEMORY:
		return GGL_OUT_OF_MEMORY;
	case CONTEXT_LOST:
		return GGL_LOST;
	}
	return GGL_REFUSED;
}

const char *ggl_string(struct ggl *g, GLenum name) { return (const char *)g->GetString(name); }

const char *ggl_extension(struct ggl *g, GLuint index) {
	return (const char *)g->GetStringi(0x1F03, index); // GL_EXTENSIONS
}

int64_t ggl_integer(struct ggl *g, GLenum name) {
	GLint64 v = 0;
	g->GetInteger64v(name, &v);
	return v;
}

int64_t ggl_integer_at(struct ggl *g, GLenum name, GLuint index) {
	GLint v = 0;
	g->GetIntegeri_v(name, index, &v);
	return (int64_t)(uint32_t)v; // a driver's 2^32 - 1 groups come as -1
}

void ggl_uuid(struct ggl *g, unsigned char *device, unsigned char *driver) {
	GLenum code;
	memset(device, 0, 16);
	memset(driver, 0, 16);
	g->GetUnsignedBytei_v(DEVICE_UUID, 0, device);
	g->GetUnsignedBytei_v(DRIVER_UUID, 0, driver);
	failure(g, &code);
}

int ggl_timer_works(struct ggl *g) {
	GLint bits = 0;
	GLuint query = 0;
	GLenum code;
	failure(g, &code);
	g->GetQueryiv(TIME_ELAPSED, QUERY_COUNTER_BITS, &bits);
	if (failure(g, &code) != GGL_OK || bits <= 0)
		return 0;
	g->GenQueries(1, &query);
	g->BeginQuery(TIME_ELAPSED, query);
	g->EndQuery(TIME_ELAPSED);
	g->DeleteQueries(1, &query);
	return failure(g, &code) == GGL_OK;
}

// mapped gives the bound buffer memory that stays mapped.
static int mapped(struct ggl *g, GLsizeiptr size, void **map, GLenum *code) {
	GLbitfield bits = MAP_READ_BIT | MAP_WRITE_BIT | MAP_PERSISTENT_BIT | MAP_COHERENT_BIT;
	int result;
	g->BufferStorage(COPY_WRITE_BUFFER, size, NULL, bits | CLIENT_STORAGE_BIT);
	if ((result = failure(g, code)) != GGL_OK)
		return result;
	*map = g->MapBufferRange(COPY_WRITE_BUFFER, 0, size, bits);
	if ((result = failure(g, code)) != GGL_OK)
		return result;
	if (!*map)
		return GGL_OUT_OF_MEMORY;
	memset(*map, 0, (size_t)size);
	return GGL_OK;
}

// cleared gives the bound buffer memory of zeros. OpenGL ES cannot clear a buffer but by
// a mapping.
static int cleared(struct ggl *g, GLsizeiptr size, GLenum usage, GLenum *code) {
	int result;
	void *p;
	g->BufferData(COPY_WRITE_BUFFER, size, NULL, usage);
	if ((result = failure(g, code)) != GGL_OK)
		return result;
	if (g->ClearBufferData) {
		g->ClearBufferData(COPY_WRITE_BUFFER, R32UI, RED_INTEGER, UNSIGNED_INT, NULL);
		return failure(g, code);
	}
	if (!(p = g->MapBufferRange(COPY_WRITE_BUFFER, 0, size, MAP_WRITE_BIT | MAP_INVALIDATE_BUFFER_BIT))) {
		result = failure(g, code);
		return result == GGL_OK ? GGL_OUT_OF_MEMORY : result;
	}
	memset(p, 0, (size_t)size);
	g->UnmapBuffer(COPY_WRITE_BUFFER);
	return failure(g, code);
}

int ggl_buffer_new(struct ggl *g, GLsizeiptr size, GLenum usage, GLuint *buffer, void **map, GLenum *code) {
	int result;
	failure(g, code);
	g->GenBuffers(1, buffer);
	g->BindBuffer(COPY_WRITE_BUFFER, *buffer);
	result = map ? mapped(g, size, map, code) : cleared(g, size, usage, code);
	if (result != GGL_OK) {
		g->DeleteBuffers(1, buffer);
		*buffer = 0;
	}
	return result;
}

int ggl_buffer_write(struct ggl *g, GLuint buffer, GLintptr offset, GLsizeiptr n, const void *data, GLenum *code) {
	g->BindBuffer(COPY_WRITE_BUFFER, buffer);
	g->BufferSubData(COPY_WRITE_BUFFER, offset, n, data);
	return failure(g, code);
}

int ggl_buffer_read(struct ggl *g, GLuint buffer, GLintptr offset, GLsizeiptr n, void *data, GLenum *code) {
	int result;
	void *p;
	g->BindBuffer(COPY_READ_BUFFER, buffer);
	p = g->MapBufferRange(COPY_READ_BUFFER, offset, n, MAP_READ_BIT);
	if (!p) {
		result = failure(g, code);
		return result == GGL_OK ? GGL_OUT_OF_MEMORY : result;
	}
	memcpy(data, p, (size_t)n);
	g->UnmapBuffer(COPY_READ_BUFFER);
	return failure(g, code);
}

void ggl_buffer_delete(struct ggl *g, GLuint buffer) { g->DeleteBuffers(1, &buffer); }

int ggl_texture_new(struct ggl *g, GLuint buffer, GLintptr offset, GLsizeiptr size, GLuint *texture, GLenum *code) {
	g->GenTextures(1, texture);
	g->ActiveTexture(TEXTURE0);
	g->BindTexture(TEXTURE_BUFFER, *texture);
	g->TexBufferRange(TEXTURE_BUFFER, RGBA32UI, buffer, offset, size);
	return failure(g, code);
}

void ggl_textures_delete(struct ggl *g, int n, const GLuint *textures) { g->DeleteTextures(n, textures); }

GLuint ggl_program_compile(struct ggl *g, const char *text, int length, int keep, char *log, int size) {
	GLenum code;
	GLint ok = 0;
	GLuint shader = g->CreateShader(COMPUTE_SHADER), program = 0;
	log[0] = 0;
	if (!shader)
		return 0;
	g->ShaderSource(shader, 1, &text, &length);
	g->CompileShader(shader);
	g->GetShaderiv(shader, COMPILE_STATUS, &ok);
	if (!ok) {
		g->GetShaderInfoLog(shader, size, NULL, log);
	} else if ((program = g->CreateProgram())) {
		if (keep)
			g->ProgramParameteri(program, PROGRAM_BINARY_RETRIEVABLE_HINT, 1);
		g->AttachShader(program, shader);
		g->LinkProgram(program);
		ok = 0;
		g->GetProgramiv(program, LINK_STATUS, &ok);
		if (ok) {
			g->DetachShader(program, shader);
		} else {
			g->GetProgramInfoLog(program, size, NULL, log);
			g->DeleteProgram(program);
			program = 0;
		}
	}
	g->DeleteShader(shader);
	failure(g, &code);
	return program;
}

GLuint ggl_program_load(struct ggl *g, GLenum format, const void *binary, int length) {
	GLenum code;
	GLint ok = 0;
	GLuint program = g->CreateProgram();
	if (!program)
		return 0;
	g->ProgramBinary(program, format, binary, length);
	g->GetProgramiv(program, LINK_STATUS, &ok);
	failure(g, &code);
	if (ok)
		return program;
	g->DeleteProgram(program);
	return 0;
}

int ggl_program_size(struct ggl *g, GLuint program) {
	GLint n = 0;
	g->GetProgramiv(program, PROGRAM_BINARY_LENGTH, &n);
	return n;
}

int ggl_program_save(struct ggl *g, GLuint program, void *binary, int size, GLenum *format) {
	GLenum code;
	GLsizei n = 0;
	g->GetProgramBinary(program, size, &n, format, binary);
	return failure(g, &code) == GGL_OK ? n : 0;
}

void ggl_program_delete(struct ggl *g, GLuint program) { g->DeleteProgram(program); }

// bound is what the binding points hold during a replay: what stays as it is, is not
// bound again.
struct bound {
	GLuint program;
	GLuint texture[GGL_BINDINGS];
	GLuint buffer[GGL_BINDINGS];
	GLintptr offset[GGL_BINDINGS];
	GLsizeiptr size[GGL_BINDINGS];
	GLintptr params;
	GLsizeiptr param_bytes;
};

static void bind(struct ggl *g, struct bound *b, const struct ggl_command *c, GLuint params) {
	if (c->program != b->program)
		g->UseProgram(b->program = c->program);
	for (GLuint i = 0; i < c->bindings; i++) {
		if (c->texture[i]) {
			if (c->texture[i] == b->texture[i])
				continue;
			g->ActiveTexture(TEXTURE0 + i);
			g->BindTexture(TEXTURE_BUFFER, b->texture[i] = c->texture[i]);
			continue;
		}
		if (c->buffer[i] == b->buffer[i] && c->offset[i] == b->offset[i] && c->size[i] == b->size[i])
			continue;
		b->buffer[i] = c->buffer[i];
		b->offset[i] = c->offset[i];
		b->size[i] = c->size[i];
		g->BindBufferRange(SHADER_STORAGE_BUFFER, i, c->buffer[i], c->offset[i], c->size[i]);
	}
	if (c->param_bytes && (c->params != b->params || c->param_bytes != b->param_bytes)) {
		b->params = c->params;
		b->param_bytes = c->param_bytes;
		g->BindBufferRange(UNIFORM_BUFFER, 0, params, c->params, c->param_bytes);
	}
}

int ggl_submit(struct ggl *g, const struct ggl_submission *s, GLsync *fence, GLenum *code) {
	struct bound b;
	int result;
	memset(&b, 0, sizeof b);
	*fence = NULL;
	for (int i = 0; i < s->n; i++) {
		const struct ggl_command *c = &s->commands[i];
		GLuint64 start = 0;
		if (c->barrier)
			g->MemoryBarrier(s->barriers);
		bind(g, &b, c, s->params);
		switch (s->timing) {
		case GGL_UNTIMED:
			g->DispatchCompute(c->groups[0], c->groups[1], c->groups[2]);
			break;
		case GGL_QUERIES:
			g->BeginQuery(TIME_ELAPSED, s->queries[i]);
			g->DispatchCompute(c->groups[0], c->groups[1], c->groups[2]);
			g->EndQuery(TIME_ELAPSED);
			break;
		case GGL_CLOCK:
			start = ggl_now();
			g->DispatchCompute(c->groups[0], c->groups[1], c->groups[2]);
			g->Finish();
			s->nanos[i] = ggl_now() - start;
			break;
		}
	}
	// The host reads after the fence, and so do the commands of the next submission.
	g->MemoryBarrier(s->end_barriers);
	*fence = g->FenceSync(SYNC_GPU_COMMANDS_COMPLETE, 0);
	g->Flush();
	result = failure(g, code);
	if (result == GGL_OK && !*fence)
		result = GGL_LOST;
	return result;
}

int ggl_wait(struct ggl *g, GLsync fence, uint64_t nanos, GLenum *code) {
	int result;
	*code = 0;
	switch (g->ClientWaitSync(fence, SYNC_FLUSH_COMMANDS_BIT, nanos)) {
	case ALREADY_SIGNALED:
	case CONDITION_SATISFIED:
		return GGL_OK;
	case TIMEOUT_EXPIRED:
		return GGL_TIMEOUT;
	}
	result = failure(g, code);
	return result == GGL_OK ? GGL_LOST : result;
}

void ggl_fence_delete(struct ggl *g, GLsync fence) { g->DeleteSync(fence); }
void ggl_queries_new(struct ggl *g, int n, GLuint *queries) { g->GenQueries(n, queries); }
void ggl_queries_delete(struct ggl *g, int n, const GLuint *queries) { g->DeleteQueries(n, queries); }

void ggl_times(struct ggl *g, int n, const GLuint *queries, GLuint64 *nanos) {
	for (int i = 0; i < n; i++)
		g->GetQueryObjectui64v(queries[i], QUERY_RESULT, &nanos[i]);
}

void ggl_finish(struct ggl *g) { g->Finish(); }

GLenum ggl_reset_status(struct ggl *g) { return g->GetGraphicsResetStatus ? g->GetGraphicsResetStatus() : 0; }
