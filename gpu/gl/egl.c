//go:build linux

// Contexts without a window, by EGL. libEGL.so.1 is opened when a device is first looked
// for; a machine without it has no place to make a context at.
#include "gl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void *EGLDisplay;
typedef void *EGLContext;
typedef void *EGLSurface;
typedef void *EGLConfig;
typedef void *EGLDevice;
typedef int32_t EGLint;
typedef unsigned EGLBoolean;
typedef unsigned EGLenum;

// Names of EGL that are used here, from the registry's egl.xml.
enum {
	EGL_EXTENSIONS = 0x3055,
	EGL_NONE = 0x3038,
	EGL_SURFACE_TYPE = 0x3033,
	EGL_PBUFFER_BIT = 0x0001,
	EGL_RENDERABLE_TYPE = 0x3040,
	EGL_OPENGL_BIT = 0x0008,
	EGL_OPENGL_ES3_BIT = 0x0040,
	EGL_WIDTH = 0x3057,
	EGL_HEIGHT = 0x3056,
	EGL_OPENGL_ES_API = 0x30A0,
	EGL_OPENGL_API = 0x30A2,
	EGL_CONTEXT_MAJOR_VERSION = 0x3098,
	EGL_CONTEXT_MINOR_VERSION = 0x30FB,
	EGL_CONTEXT_OPENGL_PROFILE_MASK = 0x30FD,
	EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT = 0x0001,
	EGL_RESET_STRATEGY = 0x31BD,     // EGL 1.5
	EGL_RESET_STRATEGY_EXT = 0x3138, // EGL_EXT_create_context_robustness
	EGL_LOSE_CONTEXT_ON_RESET = 0x31BF,
	EGL_PLATFORM_DEVICE = 0x313F,
	EGL_PLATFORM_SURFACELESS = 0x31DD,
	EGL_DRM_RENDER_NODE_FILE = 0x3377,
	MAX_DEVICES = 16,
};

static struct {
	void *lib, *gles, *desktop; // the last two for drivers whose EGL finds extensions only
	EGLint (*GetError)(void);
	void *(*GetProcAddress)(const char *);
	const char *(*QueryString)(EGLDisplay, EGLint);
	EGLDisplay (*GetDisplay)(void *);
	EGLBoolean (*Initialize)(EGLDisplay, EGLint *, EGLint *);
	EGLBoolean (*BindAPI)(EGLenum);
	EGLBoolean (*ChooseConfig)(EGLDisplay, const EGLint *, EGLConfig *, EGLint, EGLint *);
	EGLContext (*CreateContext)(EGLDisplay, EGLConfig, EGLContext, const EGLint *);
	EGLBoolean (*DestroyContext)(EGLDisplay, EGLContext);
	EGLSurface (*CreatePbufferSurface)(EGLDisplay, EGLConfig, const EGLint *);
	EGLBoolean (*DestroySurface)(EGLDisplay, EGLSurface);
	EGLBoolean (*MakeCurrent)(EGLDisplay, EGLSurface, EGLSurface, EGLContext);
	EGLBoolean (*ReleaseThread)(void);
	EGLDisplay (*GetPlatformDisplay)(EGLenum, void *, const EGLint *);
	EGLBoolean (*QueryDevices)(EGLint, EGLDevice *, EGLint *);
	const char *(*QueryDeviceString)(EGLDevice, EGLint);
	int surfaceless;
	EGLDevice devices[MAX_DEVICES];
	EGLint n;
	const char *missing;
} egl;

// listed says whether a name stands in a list that is separated by blanks.
static int listed(const char *list, const char *name) {
	size_t n = strlen(name);
	for (const char *p = list; p && (p = strstr(p, name)); p += n)
		if ((p == list || p[-1] == ' ') && (p[n] == ' ' || p[n] == 0))
			return 1;
	return 0;
}

static void load(void) {
	const char *client;
	if (!(egl.lib = dlopen("libEGL.so.1", RTLD_NOW | RTLD_LOCAL)) && !(egl.lib = dlopen("libEGL.so", RTLD_NOW | RTLD_LOCAL))) {
		egl.missing = "libEGL.so.1 is not installed";
		return;
	}
#define NEED(name)                                          \
	if (!(*(void **)&egl.name = dlsym(egl.lib, "egl" #name))) { \
		egl.missing = "libEGL has no egl" #name;            \
		return;                                             \
	}
	NEED(GetError)
	NEED(GetProcAddress)
	NEED(QueryString)
	NEED(GetDisplay)
	NEED(Initialize)
	NEED(BindAPI)
	NEED(ChooseConfig)
	NEED(CreateContext)
	NEED(DestroyContext)
	NEED(CreatePbufferSurface)
	NEED(DestroySurface)
	NEED(MakeCurrent)
	NEED(ReleaseThread)
#undef NEED
	client = egl.QueryString(NULL, EGL_EXTENSIONS);
	if (!listed(client, "EGL_EXT_platform_base"))
		return;
	*(void **)&egl.GetPlatformDisplay = egl.GetProcAddress("eglGetPlatformDisplayEXT");
	egl.surfaceless = egl.GetPlatformDisplay && listed(client, "EGL_MESA_platform_surfaceless");
	if (!egl.GetPlatformDisplay || !listed(client, "EGL_EXT_platform_device") ||
	    !(listed(client, "EGL_EXT_device_base") || listed(client, "EGL_EXT_device_enumeration")))
		return;
	*(void **)&egl.QueryDevices = egl.GetProcAddress("eglQueryDevicesEXT");
	*(void **)&egl.QueryDeviceString = egl.GetProcAddress("eglQueryDeviceStringEXT");
	if (egl.QueryDevices && !egl.QueryDevices(MAX_DEVICES, egl.devices, &egl.n))
		egl.n = 0;
}

// The places are the devices by number, then the surfaceless platform of Mesa, then the
// default display, which may want a window system.
int ggl_places(char *why, size_t size) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, load);
	if (egl.missing) {
		snprintf(why, size, "%s", egl.missing);
		return 0;
	}
	return egl.n + egl.surfaceless + 1;
}

static EGLDisplay display(int place, char *name, size_t size) {
	if (place < egl.n) {
		const char *node = NULL, *ext = NULL;
		if (egl.QueryDeviceString)
			ext = egl.QueryDeviceString(egl.devices[place], EGL_EXTENSIONS);
		if (listed(ext, "EGL_EXT_device_drm_render_node"))
			node = egl.QueryDeviceString(egl.devices[place], EGL_DRM_RENDER_NODE_FILE);
		snprintf(name, size, "device %s", node ? node : "of EGL");
		return egl.GetPlatformDisplay(EGL_PLATFORM_DEVICE, egl.devices[place], NULL);
	}
	if (place == egl.n && egl.surfaceless) {
		snprintf(name, size, "surfaceless");
		return egl.GetPlatformDisplay(EGL_PLATFORM_SURFACELESS, NULL, NULL);
	}
	snprintf(name, size, "default display");
	return egl.GetDisplay(NULL);
}

static void *entry(const char *name) {
	void *p = egl.GetProcAddress(name);
	if (!p && egl.gles)
		p = dlsym(egl.gles, name);
	if (!p && egl.desktop)
		p = dlsym(egl.desktop, name);
	return p;
}

// libraries opens what entry falls back to; one that is missing is not missed where
// eglGetProcAddress finds everything.
static void libraries(void) {
	egl.gles = dlopen("libGLESv2.so.2", RTLD_NOW | RTLD_LOCAL);
	if (!(egl.desktop = dlopen("libOpenGL.so.0", RTLD_NOW | RTLD_LOCAL)))
		egl.desktop = dlopen("libGL.so.1", RTLD_NOW | RTLD_LOCAL);
}

// context makes a context that tells of resets where the display can, or else one that
// does not.
static EGLContext context(EGLDisplay d, EGLConfig config, struct ggl_version v, const char *ext, int egl15, int *resets) {
	EGLint a[16], n = 0;
	EGLContext c;
	a[n++] = EGL_CONTEXT_MAJOR_VERSION, a[n++] = v.major;
	a[n++] = EGL_CONTEXT_MINOR_VERSION, a[n++] = v.minor;
	if (!v.es)
		a[n++] = EGL_CONTEXT_OPENGL_PROFILE_MASK, a[n++] = EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT;
	*resets = 1;
	if (listed(ext, "EGL_EXT_create_context_robustness")) {
		a[n] = EGL_RESET_STRATEGY_EXT, a[n + 1] = EGL_LOSE_CONTEXT_ON_RESET, a[n + 2] = EGL_NONE;
		if ((c = egl.CreateContext(d, config, NULL, a)))
			return c;
	}
	if (egl15) {
		a[n] = EGL_RESET_STRATEGY, a[n + 1] = EGL_LOSE_CONTEXT_ON_RESET, a[n + 2] = EGL_NONE;
		if ((c = egl.CreateContext(d, config, NULL, a)))
			return c;
	}
	*resets = 0;
	a[n] = EGL_NONE;
	return egl.CreateContext(d, config, NULL, a);
}

// configure finds a configuration and a surface for displays that cannot do without.
static int configure(EGLDisplay d, struct ggl_version v, const char *ext, EGLConfig *config, EGLSurface *surface) {
	int bare = listed(ext, "EGL_KHR_surfaceless_context");
	EGLint want[] = {EGL_SURFACE_TYPE, bare ? 0 : EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE, v.es ? EGL_OPENGL_ES3_BIT : EGL_OPENGL_BIT, EGL_NONE};
	EGLint tiny[] = {EGL_WIDTH, 1, EGL_HEIGHT, 1, EGL_NONE}, n = 0;
	*config = NULL, *surface = NULL;
	if (bare && (listed(ext, "EGL_KHR_no_config_context") || listed(ext, "EGL_MESA_configless_context")))
		return 1;
	if (!egl.ChooseConfig(d, want, config, 1, &n) || n < 1)
		return 0;
	return bare || (*surface = egl.CreatePbufferSurface(d, *config, tiny));
}

// current makes a context on a display that is initialised and fills in g.
static const char *current(struct ggl *g, EGLDisplay d, struct ggl_version v, int egl15) {
	const char *ext = egl.QueryString(d, EGL_EXTENSIONS);
	EGLConfig config;
	g->platform[0] = d;
	if (!egl.BindAPI(v.es ? EGL_OPENGL_ES_API : EGL_OPENGL_API))
		return "the language is not supported";
	if (!configure(d, v, ext, &config, &g->platform[2]))
		return "no configuration without a window";
	if (!(g->platform[1] = context(d, config, v, ext, egl15, &g->resets)))
		return "no context of this version";
	if (!egl.MakeCurrent(d, g->platform[2], g->platform[2], g->platform[1]))
		return "the context cannot be made current";
	g->get = entry;
	return ggl_load(g);
}

struct ggl *ggl_open(int place, struct ggl_version v, char *why, size_t size) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	EGLint major = 0, minor = 0;
	const char *failed;
	struct ggl *g = calloc(1, sizeof *g);
	EGLDisplay d;
	if (!g) {
		snprintf(why, size, "no memory");
		return NULL;
	}
	pthread_once(&once, libraries);
	// A display is one object for the whole process, so it is not terminated when one
	// of its contexts goes.
	d = display(place, g->place, sizeof g->place);
	if (!d || !egl.Initialize(d, &major, &minor))
		failed = "the display cannot be initialised";
	else
		failed = current(g, d, v, major > 1 || minor >= 5);
	if (!failed)
		return g;
	snprintf(why, size, "%s: %s (EGL error 0x%x)", g->place, failed, (unsigned)egl.GetError());
	ggl_close(g);
	return NULL;
}

void ggl_close(struct ggl *g) {
	EGLDisplay d = g->platform[0];
	if (d) {
		egl.MakeCurrent(d, NULL, NULL, NULL);
		if (g->platform[1])
			egl.DestroyContext(d, g->platform[1]);
		if (g->platform[2])
			egl.DestroySurface(d, g->platform[2]);
		egl.ReleaseThread();
	}
	free(g);
}

void ggl_pump(struct ggl *g) { (void)g; }

uint64_t ggl_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
