// Logical devices, memory and transfers.
#include "internal.h"

#include <stdlib.h>

#define GV_LOAD_DEVICE(result, name, parameters) \
	if (!(d->name = (result(VKAPI_PTR *) parameters)in->vkGetDeviceProcAddr(d->handle, #name))) return gv_result(GV_OLD_LOADER, #name);

gv_status gv_allocate_commands(gv_device *d, VkCommandPool pool, VkCommandBuffer *out) {
	VkCommandBufferAllocateInfo info = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
		.commandPool = pool,
		.commandBufferCount = 1,
	};
	GV_TRY(d, vkAllocateCommandBuffers, d->handle, &info, out);
	return GV_OK;
}

gv_status gv_create_fence(gv_device *d, VkFence *out) {
	VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
	GV_TRY(d, vkCreateFence, d->handle, &info, NULL, out);
	return GV_OK;
}

static gv_status open_device(gv_instance *in, VkPhysicalDevice physical, const gv_properties *p, gv_device *d) {
	const float priority = 1;
	VkDeviceQueueCreateInfo queue = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
		.queueFamilyIndex = p->queue_family,
		.queueCount = 1,
		.pQueuePriorities = &priority,
	};
	VkPhysicalDeviceShaderFloat16Int8Features half = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, .shaderFloat16 = 1};
	VkPhysicalDeviceShaderIntegerDotProductFeatures dot = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, .shaderIntegerDotProduct = 1};
	const char *extensions[3];
	VkDeviceCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
		.queueCreateInfoCount = 1,
		.pQueueCreateInfos = &queue,
		.ppEnabledExtensionNames = extensions,
	};
	if (p->half) half.pNext = (void *)info.pNext, info.pNext = &half;
	if (p->dot4) dot.pNext = (void *)info.pNext, info.pNext = &dot;
	if (p->half_extension) extensions[info.enabledExtensionCount++] = "VK_KHR_shader_float16_int8";
	if (p->dot4_extension) extensions[info.enabledExtensionCount++] = "VK_KHR_shader_integer_dot_product";
	if (p->portability_subset) extensions[info.enabledExtensionCount++] = "VK_KHR_portability_subset";
	GV_TRY(in, vkCreateDevice, physical, &info, NULL, &d->handle);
	GV_DEVICE_FUNCTIONS(GV_LOAD_DEVICE)
	d->vkGetDeviceQueue(d->handle, p->queue_family, 0, &d->queue);

	VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, .queueFamilyIndex = p->queue_family};
	GV_TRY(d, vkCreateCommandPool, d->handle, &pool, NULL, &d->programs);
	pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
	GV_TRY(d, vkCreateCommandPool, d->handle, &pool, NULL, &d->transfers);
	for (int i = 0; i < GV_SLOTS; i++) {
		gv_status s = gv_allocate_commands(d, d->transfers, &d->slots[i].commands);
		if (s.result >= 0) s = gv_create_fence(d, &d->slots[i].fence);
		if (s.result < 0) return s;
	}
	return GV_OK;
}

gv_status gv_device_create(gv_instance *in, uint32_t index, const gv_properties *p, gv_device **out) {
	VkPhysicalDevice physical = NULL;
	gv_status s = gv_physical(in, index, &physical);
	if (s.result < 0) return s;
	gv_device *d = calloc(1, sizeof *d);
	if (!d) return gv_result(VK_ERROR_OUT_OF_HOST_MEMORY, "calloc");
	s = open_device(in, physical, p, d);
	if (s.result < 0) {
		gv_device_destroy(d);
		return s;
	}
	*out = d;
	return GV_OK;
}

void gv_device_destroy(gv_device *d) {
	if (d->handle && d->vkWaitForFences) { // all functions are there
		for (int i = 0; i < GV_SLOTS; i++) d->vkDestroyFence(d->handle, d->slots[i].fence, NULL);
		d->vkDestroyCommandPool(d->handle, d->transfers, NULL);
		d->vkDestroyCommandPool(d->handle, d->programs, NULL);
	}
	if (d->handle && d->vkDestroyDevice) d->vkDestroyDevice(d->handle, NULL);
	free(d);
}

gv_status gv_buffer_create(gv_device *d, uint64_t size, gv_buffer *out) {
	VkBufferCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
		.size = size,
		.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT |
			 VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
	};
	GV_TRY(d, vkCreateBuffer, d->handle, &info, NULL, &out->handle);
	VkMemoryRequirements need;
	d->vkGetBufferMemoryRequirements(d->handle, out->handle, &need);
	out->need = need.size;
	out->types = need.memoryTypeBits;
	return GV_OK;
}

gv_status gv_buffer_allocate(gv_device *d, gv_buffer *b, uint32_t type, int map) {
	VkMemoryAllocateInfo info = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
		.allocationSize = b->need,
		.memoryTypeIndex = type,
	};
	GV_TRY(d, vkAllocateMemory, d->handle, &info, NULL, &b->memory);
	GV_TRY(d, vkBindBufferMemory, d->handle, b->handle, b->memory, 0);
	if (map) {
		void *at = NULL;
		GV_TRY(d, vkMapMemory, d->handle, b->memory, 0, VK_WHOLE_SIZE, 0, &at);
		b->mapped = at;
	}
	return GV_OK;
}

void gv_buffer_destroy(gv_device *d, gv_buffer *b) {
	d->vkDestroyBuffer(d->handle, b->handle, NULL);
	d->vkFreeMemory(d->handle, b->memory, NULL); // unmaps it
	b->handle = b->memory = 0;
	b->mapped = NULL;
}

gv_status gv_flush(gv_device *d, VkDeviceMemory memory, uint64_t offset, uint64_t size) {
	VkMappedMemoryRange range = {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, .memory = memory, .offset = offset, .size = size};
	GV_TRY(d, vkFlushMappedMemoryRanges, d->handle, 1, &range);
	return GV_OK;
}

gv_status gv_invalidate(gv_device *d, VkDeviceMemory memory, uint64_t offset, uint64_t size) {
	VkMappedMemoryRange range = {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, .memory = memory, .offset = offset, .size = size};
	GV_TRY(d, vkInvalidateMappedMemoryRanges, d->handle, 1, &range);
	return GV_OK;
}


void gv_barrier(gv_device *d, VkCommandBuffer c, VkFlags from, VkFlags writes, VkFlags to, VkFlags uses) {
	VkMemoryBarrier b = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = writes, .dstAccessMask = uses};
	d->vkCmdPipelineBarrier(c, from, to, 0, 1, &b, 0, NULL, 0, NULL);
}

// begin_transfer starts recording after everything that was submitted before.
static gv_status begin_transfer(gv_device *d, gv_slot *s) {
	VkCommandBufferBeginInfo info = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
		.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, // recorded anew for each transfer
	};
	GV_TRY(d, vkBeginCommandBuffer, s->commands, &info);
	gv_barrier(d, s->commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
		VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
		VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
	return GV_OK;
}

static gv_status end_transfer(gv_device *d, gv_slot *s) {
	gv_barrier(d, s->commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
	GV_TRY(d, vkEndCommandBuffer, s->commands);
	return gv_submit(d, s->commands, s->fence);
}

gv_status gv_copy(gv_device *d, uint32_t slot, VkBuffer src, uint64_t src_offset, VkBuffer dst, uint64_t dst_offset, uint64_t size) {
	gv_slot *s = &d->slots[slot];
	gv_status begun = begin_transfer(d, s);
	if (begun.result < 0) return begun;
	VkBufferCopy region = {.srcOffset = src_offset, .dstOffset = dst_offset, .size = size};
	d->vkCmdCopyBuffer(s->commands, src, dst, 1, &region);
	return end_transfer(d, s);
}

gv_status gv_zero(gv_device *d, uint32_t slot, VkBuffer b) {
	gv_slot *s = &d->slots[slot];
	gv_status begun = begin_transfer(d, s);
	if (begun.result < 0) return begun;
	d->vkCmdFillBuffer(s->commands, b, 0, VK_WHOLE_SIZE, 0);
	return end_transfer(d, s);
}

VkFence gv_slot_fence(gv_device *d, uint32_t slot) { return d->slots[slot].fence; }

gv_status gv_submit(gv_device *d, VkCommandBuffer commands, VkFence fence) {
	VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
	GV_TRY(d, vkResetFences, d->handle, 1, &fence);
	GV_TRY(d, vkQueueSubmit, d->queue, 1, &info, fence);
	return GV_OK;
}

gv_status gv_wait(gv_device *d, VkFence fence, uint64_t nanoseconds) {
	return gv_result(d->vkWaitForFences(d->handle, 1, &fence, 1, nanoseconds), "vkWaitForFences");
}
