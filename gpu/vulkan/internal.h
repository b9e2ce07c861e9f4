// What the C files share.
#ifndef GV_INTERNAL_H
#define GV_INTERNAL_H

#include "gv.h"

#define GV_MEMBER(result, name, parameters) result(VKAPI_PTR *name) parameters;

struct gv_instance {
	PFN_vkGetInstanceProcAddr get;
	GV_GLOBAL_FUNCTIONS(GV_MEMBER)
	GV_INSTANCE_FUNCTIONS(GV_MEMBER)
	GV_DEBUG_FUNCTIONS(GV_MEMBER)
	VkInstance handle;
	VkDebugUtilsMessengerEXT messenger;
	gv_message *messages; // pushed and taken with atomic operations: drivers have threads
};

typedef struct gv_slot {
	VkCommandBuffer commands;
	VkFence fence;
} gv_slot;

struct gv_device {
	GV_DEVICE_FUNCTIONS(GV_MEMBER)
	VkDevice handle;
	VkQueue queue;
	VkCommandPool programs;  // recorded once, submitted many times
	VkCommandPool transfers; // recorded for each transfer
	gv_slot slots[GV_SLOTS];
};

static inline gv_status gv_result(VkResult r, const char *where) {
	gv_status s = {r, where};
	return s;
}

#define GV_OK gv_result(VK_SUCCESS, NULL)

// GV_TRY returns from the function when a call of Vulkan fails.
#define GV_TRY(object, name, ...)                                 \
	do {                                                      \
		VkResult gv_try = (object)->name(__VA_ARGS__);    \
		if (gv_try < 0) return gv_result(gv_try, #name);  \
	} while (0)

// gv_open_library gives the loader's entry, NULL when the machine has no Vulkan.
PFN_vkGetInstanceProcAddr gv_open_library(void);
// gv_physical finds the physical device of an index.
gv_status gv_physical(gv_instance *, uint32_t index, VkPhysicalDevice *out);
gv_status gv_allocate_commands(gv_device *, VkCommandPool, VkCommandBuffer *out);
gv_status gv_create_fence(gv_device *, VkFence *out);
// gv_barrier makes the writes of one stage visible to uses in another.
void gv_barrier(gv_device *, VkCommandBuffer, VkFlags from, VkFlags writes, VkFlags to, VkFlags uses);

#endif
