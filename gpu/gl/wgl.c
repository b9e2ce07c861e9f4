//go:build windows

// Contexts on a hidden window, by WGL. opengl32.dll is part of Windows, but it is opened
// at run time all the same: what a machine's driver offers shows only there.
#include "gl.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stdio.h>
#include <stdlib.h>

// Names of WGL_ARB_create_context and its relatives.
enum {
	WGL_CONTEXT_MAJOR_VERSION = 0x2091,
	WGL_CONTEXT_MINOR_VERSION = 0x2092,
	WGL_CONTEXT_PROFILE_MASK = 0x9126,
	WGL_CONTEXT_CORE_PROFILE_BIT = 0x0001,
	WGL_CONTEXT_ES2_PROFILE_BIT = 0x0004, // any version of OpenGL ES from 2 on
	WGL_RESET_STRATEGY = 0x8256,
	WGL_LOSE_CONTEXT_ON_RESET = 0x8252,
};

static HMODULE library;
static HGLRC(WINAPI *create_context)(HDC);
static BOOL(WINAPI *delete_context)(HGLRC);
static BOOL(WINAPI *make_current)(HDC, HGLRC);
static PROC(WINAPI *get_proc_address)(LPCSTR);

static BOOL CALLBACK load(PINIT_ONCE once, PVOID parameter, PVOID *context) {
	(void)once, (void)parameter, (void)context;
	if (!(library = LoadLibraryExA("opengl32.dll", NULL, LOAD_LIBRARY_SEARCH_SYSTEM32)))
		return TRUE;
	create_context = (void *)GetProcAddress(library, "wglCreateContext");
	delete_context = (void *)GetProcAddress(library, "wglDeleteContext");
	make_current = (void *)GetProcAddress(library, "wglMakeCurrent");
	get_proc_address = (void *)GetProcAddress(library, "wglGetProcAddress");
	return TRUE;
}

// There is one place: Windows chooses the device behind it.
int ggl_places(char *why, size_t size) {
	static INIT_ONCE once = INIT_ONCE_STATIC_INIT;
	InitOnceExecuteOnce(&once, load, NULL, NULL);
	if (create_context && delete_context && make_current && get_proc_address)
		return 1;
	snprintf(why, size, "opengl32.dll cannot be opened");
	return 0;
}

// entry finds what is newer than OpenGL 1.1 in the driver and the rest in the library.
// Some drivers give 1, 2, 3 or -1 for a name they do not know.
static void *entry(const char *name) {
	intptr_t p = (intptr_t)get_proc_address(name);
	if (p < -1 || p > 3)
		return (void *)p;
	return (void *)GetProcAddress(library, name);
}

static HWND window(void) {
	static const char class[] = "GanglionOpenGL";
	WNDCLASSA c = {0};
	c.style = CS_OWNDC;
	c.lpfnWndProc = DefWindowProcA;
	c.hInstance = GetModuleHandleA(NULL);
	c.lpszClassName = class;
	RegisterClassA(&c); // it fails when the class is there already
	return CreateWindowExA(0, class, class, WS_POPUP, 0, 0, 1, 1, NULL, NULL, c.hInstance, NULL);
}

static HGLRC context(HDC dc, struct ggl_version v, int *resets) {
	HGLRC(WINAPI *create)(HDC, HGLRC, const int *) = (void *)get_proc_address("wglCreateContextAttribsARB");
	int a[] = {
		WGL_CONTEXT_MAJOR_VERSION, v.major,
		WGL_CONTEXT_MINOR_VERSION, v.minor,
		WGL_CONTEXT_PROFILE_MASK, v.es ? WGL_CONTEXT_ES2_PROFILE_BIT : WGL_CONTEXT_CORE_PROFILE_BIT,
		WGL_RESET_STRATEGY, WGL_LOSE_CONTEXT_ON_RESET, 0};
	HGLRC c;
	if (!create)
		return NULL;
	*resets = 1;
	if ((c = create(dc, NULL, a)))
		return c;
	*resets = 0;
	a[6] = 0;
	return create(dc, NULL, a);
}

// current makes the context: a plain one first, without which the driver does not tell
// how to make one of a version.
static const char *current(struct ggl *g, struct ggl_version v) {
	PIXELFORMATDESCRIPTOR format = {sizeof format, 1, PFD_DRAW_TO_WINDOW | PFD_SUPPORT_OPENGL, PFD_TYPE_RGBA, 32};
	HGLRC plain;
	HDC dc;
	if (!(g->platform[0] = window()) || !(g->platform[2] = dc = GetDC(g->platform[0])))
		return "no window";
	if (!SetPixelFormat(dc, ChoosePixelFormat(dc, &format), &format))
		return "no pixel format";
	if (!(plain = create_context(dc)))
		return "no context";
	if (make_current(dc, plain))
		g->platform[1] = context(dc, v, &g->resets);
	make_current(NULL, NULL);
	delete_context(plain);
	if (!g->platform[1])
		return "no context of this version";
	if (!make_current(dc, g->platform[1]))
		return "the context cannot be made current";
	g->get = entry;
	return ggl_load(g);
}

struct ggl *ggl_open(int place, struct ggl_version v, char *why, size_t size) {
	struct ggl *g = calloc(1, sizeof *g);
	const char *failed;
	(void)place;
	if (!g) {
		snprintf(why, size, "no memory");
		return NULL;
	}
	snprintf(g->place, sizeof g->place, "window");
	if (!(failed = current(g, v)))
		return g;
	snprintf(why, size, "%s: %s (Windows error %lu)", g->place, failed, GetLastError());
	ggl_close(g);
	return NULL;
}

void ggl_close(struct ggl *g) {
	make_current(NULL, NULL);
	if (g->platform[1])
		delete_context(g->platform[1]);
	if (g->platform[2])
		ReleaseDC(g->platform[0], g->platform[2]);
	if (g->platform[0])
		DestroyWindow(g->platform[0]);
	free(g);
}

void ggl_pump(struct ggl *g) {
	MSG m;
	while (PeekMessageA(&m, g->platform[0], 0, 0, PM_REMOVE))
		DispatchMessageA(&m);
}

uint64_t ggl_now(void) {
	LARGE_INTEGER ticks, rate;
	QueryPerformanceCounter(&ticks);
	QueryPerformanceFrequency(&rate);
	return (uint64_t)((double)ticks.QuadPart * 1e9 / (double)rate.QuadPart);
}
