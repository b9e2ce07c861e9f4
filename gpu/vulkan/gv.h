// What Go calls. Each function does one thing that Go decided on; checks of arguments and
// limits are Go's. A device and all that belongs to it are used by one thread at a time.
#ifndef GV_H
#define GV_H

#include "vk.h"

// gv_status is the result of a Vulkan function and the name of the one that gave it.
typedef struct gv_status {
	VkResult result;
	const char *where;
} gv_status;

// Results of our own.
enum {
	GV_NO_LIBRARY = -2000000001,
	GV_OLD_LOADER = -2000000002,
	GV_NO_DEVICE = -2000000003,
};

typedef struct gv_instance gv_instance;
typedef struct gv_device gv_device;

// gv_message is a text of the validation layer.
typedef struct gv_message {
	struct gv_message *next;
	char text[];
} gv_message;

// gv_properties is what a physical device says of itself.
typedef struct gv_properties {
	uint32_t api_version, driver_version, vendor, device;
	int32_t type;
	char name[256], driver_name[256], driver_info[256];
	uint8_t device_uuid[16], driver_uuid[16], cache_uuid[16];

	int has_compute;
	uint32_t queue_family;
	uint32_t timestamp_bits;
	float timestamp_period; // nanoseconds

	uint32_t storage_buffers, storage_range, texel_buffers, texels, push_bytes, allocations;
	uint64_t allocation_bytes, offset_align, texel_align, atom;
	uint32_t invocations, shared_bytes, groups[3];

	uint32_t subgroup; // 0 without arithmetic in compute shaders
	int dot4, half;
	int dot4_extension, half_extension, portability_subset; // to be enabled by name
	VkPhysicalDeviceMemoryProperties memory;
} gv_properties;

gv_status gv_instance_create(int validation, int synchronization, gv_instance **out);
void gv_instance_destroy(gv_instance *);
// gv_instance_free frees what is left after gv_instance_destroy: the messages.
void gv_instance_free(gv_instance *);
// gv_messages takes all messages since the last call, the newest first; free them.
gv_message *gv_messages(gv_instance *);
gv_status gv_instance_count(gv_instance *, uint32_t *count);
gv_status gv_instance_properties(gv_instance *, uint32_t index, gv_properties *out);

gv_status gv_device_create(gv_instance *, uint32_t index, const gv_properties *, gv_device **out);
// gv_device_destroy frees the device; everything made on it is destroyed before.
void gv_device_destroy(gv_device *);

typedef struct gv_buffer {
	VkBuffer handle;
	VkDeviceMemory memory;
	uint8_t *mapped; // NULL when the host cannot see it
	uint64_t need;   // bytes of memory to allocate
	uint32_t types;  // memory types it may lie in, a bit each
} gv_buffer;

gv_status gv_buffer_create(gv_device *, uint64_t size, gv_buffer *out);
gv_status gv_buffer_allocate(gv_device *, gv_buffer *, uint32_t type, int map);
void gv_buffer_destroy(gv_device *, gv_buffer *);
gv_status gv_flush(gv_device *, VkDeviceMemory, uint64_t offset, uint64_t size);
gv_status gv_invalidate(gv_device *, VkDeviceMemory, uint64_t offset, uint64_t size);

// Transfers run in slots of their own; a slot is waited for before it is used again.
#define GV_SLOTS 2
gv_status gv_copy(gv_device *, uint32_t slot, VkBuffer src, uint64_t src_offset, VkBuffer dst, uint64_t dst_offset, uint64_t size);
gv_status gv_zero(gv_device *, uint32_t slot, VkBuffer);
VkFence gv_slot_fence(gv_device *, uint32_t slot);

typedef struct gv_layout {
	VkDescriptorSetLayout set;
	VkPipelineLayout pipeline;
} gv_layout;

// gv_layout_create makes the layout of a kernel; a bit of texels says that the binding is
// read by texel fetches.
gv_status gv_layout_create(gv_device *, uint32_t bindings, uint64_t texels, uint32_t push_bytes, gv_layout *out);
void gv_layout_destroy(gv_device *, gv_layout *);
gv_status gv_cache_create(gv_device *, const void *data, size_t size, VkPipelineCache *out);
// gv_cache_data writes at most *size bytes and sets it; data may be NULL to ask for it.
gv_status gv_cache_data(gv_device *, VkPipelineCache, size_t *size, void *data);
void gv_cache_destroy(gv_device *, VkPipelineCache);
gv_status gv_pipeline_create(gv_device *, VkPipelineCache, VkPipelineLayout, const uint32_t *spirv, size_t bytes,
			     const uint32_t *constants, uint32_t count, VkPipeline *out);
void gv_pipeline_destroy(gv_device *, VkPipeline);

// gv_range is a part of a buffer that is bound.
typedef struct gv_range {
	VkBuffer buffer;
	uint64_t offset, size;
	uint32_t texels;
} gv_range;

// gv_set is a descriptor set: count of the recording's ranges from first on.
typedef struct gv_set {
	VkDescriptorSetLayout layout;
	uint32_t first, count;
} gv_set;

typedef struct gv_command {
	VkPipeline pipeline;
	VkPipelineLayout layout;
	uint32_t set; // of the recording, GV_NO_SET without bindings
	uint32_t param_offset, param_bytes;
	uint32_t groups[3];
	uint32_t barrier;
} gv_command;

#define GV_NO_SET 0xffffffffu

typedef struct gv_recording {
	const gv_command *commands;
	const gv_set *sets;
	const gv_range *ranges;
	const uint8_t *params;
	uint32_t command_count, set_count, range_count, texel_count;
	int timed;
} gv_recording;

typedef struct gv_program {
	VkCommandBuffer commands;
	VkDescriptorPool pool;
	VkQueryPool queries;
	VkFence fence;
	VkBufferView *views;
	uint32_t view_count;
} gv_program;

gv_status gv_program_create(gv_device *, const gv_recording *, gv_program *out);
void gv_program_destroy(gv_device *, gv_program *);
gv_status gv_submit(gv_device *, VkCommandBuffer, VkFence);
// gv_wait gives VK_TIMEOUT when the fence is not signalled in time.
gv_status gv_wait(gv_device *, VkFence, uint64_t nanoseconds);
// gv_times reads count timestamps of a program that has ended.
gv_status gv_times(gv_device *, VkQueryPool, uint32_t count, uint64_t *out);

#endif
