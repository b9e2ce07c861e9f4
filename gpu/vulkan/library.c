// Opens Vulkan's loader at run time: nothing is linked, so that a program starts on a
// machine without Vulkan. The library is never closed again, for drivers leave threads
// and exit handlers behind.
#include "internal.h"

#ifdef _WIN32
#include <windows.h>

// Only the system's folder is searched: a library beside a document must not be loaded.
static void *open_library(void) { return (void *)LoadLibraryExA("vulkan-1.dll", NULL, LOAD_LIBRARY_SEARCH_SYSTEM32); }
static void *find(void *library, const char *name) { return (void *)GetProcAddress((HMODULE)library, name); }
#else
#include <dlfcn.h>

static void *open_library(void) {
	static const char *const names[] = {
#ifdef __APPLE__
		"libvulkan.1.dylib",
		"libMoltenVK.dylib",
#else
		"libvulkan.so.1",
		"libvulkan.so", // Android
#endif
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		if (library) return library;
	}
	return NULL;
}

static void *find(void *library, const char *name) { return dlsym(library, name); }
#endif

PFN_vkGetInstanceProcAddr gv_open_library(void) {
	void *library = open_library();
	return library ? (PFN_vkGetInstanceProcAddr)find(library, "vkGetInstanceProcAddr") : NULL;
}
