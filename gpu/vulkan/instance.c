// Instances, the validation layer's messages, and what physical devices say.
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static const char validation_layer[] = "VK_LAYER_KHRONOS_validation";

static VkBool32 VKAPI_PTR keep_message(int32_t severity, VkFlags type, const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
	(void)severity, (void)type;
	gv_instance *in = user;
	size_t n = strlen(data->pMessage) + 1;
	gv_message *m = malloc(sizeof *m + n);
	if (!m) return 0;
	memcpy(m->text, data->pMessage, n);
	m->next = __atomic_load_n(&in->messages, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&in->messages, &m->next, m, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
	}
	return 0;
}

gv_message *gv_messages(gv_instance *in) { return __atomic_exchange_n(&in->messages, NULL, __ATOMIC_ACQUIRE); }

static gv_status has_layer(gv_instance *in, const char *name) {
	uint32_t n = 0;
	GV_TRY(in, vkEnumerateInstanceLayerProperties, &n, NULL);
	VkLayerProperties *all = calloc(n ? n : 1, sizeof *all);
	if (!all) return gv_result(VK_ERROR_OUT_OF_HOST_MEMORY, "calloc");
	VkResult r = in->vkEnumerateInstanceLayerProperties(&n, all);
	int found = 0;
	for (uint32_t i = 0; r >= 0 && i < n; i++) found |= strcmp(all[i].layerName, name) == 0;
	free(all);
	if (r < 0) return gv_result(r, "vkEnumerateInstanceLayerProperties");
	return found ? GV_OK : gv_result(VK_ERROR_LAYER_NOT_PRESENT, name);
}

static int has_portability(gv_instance *in) {
	uint32_t n = 0;
	if (in->vkEnumerateInstanceExtensionProperties(NULL, &n, NULL) < 0) return 0;
	VkExtensionProperties *all = calloc(n ? n : 1, sizeof *all);
	if (!all) return 0;
	int found = 0;
	if (in->vkEnumerateInstanceExtensionProperties(NULL, &n, all) >= 0)
		for (uint32_t i = 0; i < n; i++) found |= strcmp(all[i].extensionName, "VK_KHR_portability_enumeration") == 0;
	free(all);
	return found;
}

#define GV_LOAD_GLOBAL(result, name, parameters) in->name = (result(VKAPI_PTR *) parameters)in->get(NULL, #name);
#define GV_LOAD_INSTANCE(result, name, parameters) \
	if (!(in->name = (result(VKAPI_PTR *) parameters)in->get(in->handle, #name))) return gv_result(GV_OLD_LOADER, #name);

static gv_status open_instance(gv_instance *in, int validation, int synchronization) {
	if (!(in->get = gv_open_library())) return gv_result(GV_NO_LIBRARY, "vkGetInstanceProcAddr");
	GV_GLOBAL_FUNCTIONS(GV_LOAD_GLOBAL)
	uint32_t version = 0;
	if (!in->vkEnumerateInstanceVersion || !in->vkCreateInstance || !in->vkEnumerateInstanceLayerProperties ||
	    !in->vkEnumerateInstanceExtensionProperties || in->vkEnumerateInstanceVersion(&version) < 0 || version < VK_API_VERSION_1_1)
		return gv_result(GV_OLD_LOADER, "vkEnumerateInstanceVersion");

	// The messenger in the chain hears what creating and destroying the instance says.
	VkDebugUtilsMessengerCreateInfoEXT messenger = {
		.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
		.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
		.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
		.pfnUserCallback = keep_message,
		.pUserData = in,
	};
	const int32_t enable[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
	VkValidationFeaturesEXT features = {
		.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
		.pNext = &messenger,
		.enabledValidationFeatureCount = synchronization ? 1 : 0,
		.pEnabledValidationFeatures = enable,
	};
	const char *layers[] = {validation_layer};
	const char *extensions[3];
	VkApplicationInfo app = {
		.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
		.pApplicationName = "ganglion",
		.apiVersion = VK_API_VERSION_1_3, // a device of 1.1 is given nothing newer
	};
	VkInstanceCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
		.pApplicationInfo = &app,
		.ppEnabledExtensionNames = extensions,
		.ppEnabledLayerNames = layers,
	};
	if (has_portability(in)) {
		extensions[info.enabledExtensionCount++] = "VK_KHR_portability_enumeration";
		info.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
	}
	if (validation) {
		gv_status s = has_layer(in, validation_layer);
		if (s.result < 0) return s;
		extensions[info.enabledExtensionCount++] = "VK_EXT_debug_utils";
		extensions[info.enabledExtensionCount++] = "VK_EXT_validation_features";
		info.enabledLayerCount = 1;
		info.pNext = &features;
	}
	GV_TRY(in, vkCreateInstance, &info, NULL, &in->handle);
	GV_INSTANCE_FUNCTIONS(GV_LOAD_INSTANCE)
	if (validation) {
		GV_DEBUG_FUNCTIONS(GV_LOAD_INSTANCE)
		GV_TRY(in, vkCreateDebugUtilsMessengerEXT, in->handle, &messenger, NULL, &in->messenger);
	}
	return GV_OK;
}

gv_status gv_instance_create(int validation, int synchronization, gv_instance **out) {
	gv_instance *in = calloc(1, sizeof *in);
	if (!in) return gv_result(VK_ERROR_OUT_OF_HOST_MEMORY, "calloc");
	gv_status s = open_instance(in, validation, synchronization);
	if (s.result < 0) {
		gv_instance_destroy(in);
		gv_instance_free(in);
		return s;
	}
	*out = in;
	return GV_OK;
}

void gv_instance_destroy(gv_instance *in) {
	if (in->messenger) in->vkDestroyDebugUtilsMessengerEXT(in->handle, in->messenger, NULL);
	if (in->handle && in->vkDestroyInstance) in->vkDestroyInstance(in->handle, NULL);
	in->messenger = 0;
	in->handle = NULL;
}

void gv_instance_free(gv_instance *in) {
	for (gv_message *m = gv_messages(in); m;) {
		gv_message *next = m->next;
		free(m);
		m = next;
	}
	free(in);
}

gv_status gv_instance_count(gv_instance *in, uint32_t *count) {
	*count = 0;
	GV_TRY(in, vkEnumeratePhysicalDevices, in->handle, count, NULL);
	return GV_OK;
}

gv_status gv_physical(gv_instance *in, uint32_t index, VkPhysicalDevice *out) {
	uint32_t n = index + 1;
	VkPhysicalDevice *all = calloc(n, sizeof *all);
	if (!all) return gv_result(VK_ERROR_OUT_OF_HOST_MEMORY, "calloc");
	VkResult r = in->vkEnumeratePhysicalDevices(in->handle, &n, all);
	if (r >= 0) *out = all[index];
	free(all);
	if (r < 0) return gv_result(r, "vkEnumeratePhysicalDevices");
	return n > index ? GV_OK : gv_result(GV_NO_DEVICE, "vkEnumeratePhysicalDevices");
}

// extensions says which of those that matter a device has.
typedef struct extensions {
	int driver, half, dot, portability;
} extensions;

static gv_status find_extensions(gv_instance *in, VkPhysicalDevice device, extensions *out) {
	uint32_t n = 0;
	GV_TRY(in, vkEnumerateDeviceExtensionProperties, device, NULL, &n, NULL);
	VkExtensionProperties *all = calloc(n ? n : 1, sizeof *all);
	if (!all) return gv_result(VK_ERROR_OUT_OF_HOST_MEMORY, "calloc");
	VkResult r = in->vkEnumerateDeviceExtensionProperties(device, NULL, &n, all);
	for (uint32_t i = 0; r >= 0 && i < n; i++) {
		const char *name = all[i].extensionName;
		out->driver |= strcmp(name, "VK_KHR_driver_properties") == 0;
		out->half |= strcmp(name, "VK_KHR_shader_float16_int8") == 0;
		out->dot |= strcmp(name, "VK_KHR_shader_integer_dot_product") == 0;
		out->portability |= strcmp(name, "VK_KHR_portability_subset") == 0;
	}
	free(all);
	return r < 0 ? gv_result(r, "vkEnumerateDeviceExtensionProperties") : GV_OK;
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void copy_limits(const VkPhysicalDeviceLimits *l, gv_properties *out) {
	out->storage_buffers = least(l->maxPerStageDescriptorStorageBuffers, least(l->maxDescriptorSetStorageBuffers, l->maxPerStageResources));
	out->storage_range = l->maxStorageBufferRange;
	out->texel_buffers = least(l->maxPerStageDescriptorSampledImages, l->maxPerStageResources);
	out->texels = l->maxTexelBufferElements;
	out->push_bytes = l->maxPushConstantsSize;
	out->allocations = l->maxMemoryAllocationCount;
	out->offset_align = l->minStorageBufferOffsetAlignment;
	out->texel_align = l->minTexelBufferOffsetAlignment;
	out->atom = l->nonCoherentAtomSize;
	out->invocations = least(l->maxComputeWorkGroupInvocations, l->maxComputeWorkGroupSize[0]);
	out->shared_bytes = l->maxComputeSharedMemorySize;
	memcpy(out->groups, l->maxComputeWorkGroupCount, sizeof out->groups);
	out->timestamp_period = l->timestampPeriod;
}

// find_queue takes a family that computes and does not draw, if there is one: a desktop's
// windows are drawn by the other.
static gv_status find_queue(gv_instance *in, VkPhysicalDevice device, gv_properties *out) {
	uint32_t n = 0;
	in->vkGetPhysicalDeviceQueueFamilyProperties(device, &n, NULL);
	VkQueueFamilyProperties *all = calloc(n ? n : 1, sizeof *all);
	if (!all) return gv_result(VK_ERROR_OUT_OF_HOST_MEMORY, "calloc");
	in->vkGetPhysicalDeviceQueueFamilyProperties(device, &n, all);
	for (uint32_t i = 0; i < n; i++) {
		int computes = (all[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0, draws = (all[i].queueFlags & VK_QUEUE_GRAPHICS_BIT) != 0;
		if (!computes || all[i].queueCount == 0 || (out->has_compute && draws)) continue;
		out->has_compute = 1;
		out->queue_family = i;
		out->timestamp_bits = all[i].timestampValidBits;
		if (!draws) break;
	}
	free(all);
	return GV_OK;
}

// query_newer asks for what came after Vulkan 1.0, for devices of 1.1 and newer.
static void query_newer(gv_instance *in, VkPhysicalDevice device, const extensions *has, gv_properties *out) {
	int v12 = out->api_version >= VK_API_VERSION_1_2, v13 = out->api_version >= VK_API_VERSION_1_3;
	VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
	VkPhysicalDeviceSubgroupProperties subgroup = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, .pNext = &id};
	VkPhysicalDeviceMaintenance3Properties memory = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, .pNext = &subgroup};
	VkPhysicalDeviceDriverProperties driver = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
	VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &memory};
	VkPhysicalDeviceShaderFloat16Int8Features half = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES};
	VkPhysicalDeviceShaderIntegerDotProductFeatures dots = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
	VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
	if (v12 || has->driver) driver.pNext = properties.pNext, properties.pNext = &driver;
	if (v13 || has->dot) dots.pNext = features.pNext, features.pNext = &dots;
	if (v12 || has->half) half.pNext = features.pNext, features.pNext = &half;
	in->vkGetPhysicalDeviceProperties2(device, &properties);
	in->vkGetPhysicalDeviceFeatures2(device, &features);

	memcpy(out->device_uuid, id.deviceUUID, sizeof out->device_uuid);
	memcpy(out->driver_uuid, id.driverUUID, sizeof out->driver_uuid);
	memcpy(out->driver_name, driver.driverName, sizeof out->driver_name);
	memcpy(out->driver_info, driver.driverInfo, sizeof out->driver_info);
	out->allocation_bytes = memory.maxMemoryAllocationSize;
	if ((subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) && (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT))
		out->subgroup = subgroup.subgroupSize;
	out->dot4 = dots.shaderIntegerDotProduct != 0; // how fast they are is for gpu/probe to find
	out->half = half.shaderFloat16 != 0;
	out->dot4_extension = out->dot4 && !v13;
	out->half_extension = out->half && !v12;
}

gv_status gv_instance_properties(gv_instance *in, uint32_t index, gv_properties *out) {
	VkPhysicalDevice device = NULL;
	gv_status s = gv_physical(in, index, &device);
	if (s.result < 0) return s;
	memset(out, 0, sizeof *out);
	VkPhysicalDeviceProperties p;
	in->vkGetPhysicalDeviceProperties(device, &p);
	out->api_version = p.apiVersion;
	out->driver_version = p.driverVersion;
	out->vendor = p.vendorID;
	out->device = p.deviceID;
	out->type = p.deviceType;
	memcpy(out->name, p.deviceName, sizeof out->name);
	memcpy(out->cache_uuid, p.pipelineCacheUUID, sizeof out->cache_uuid);
	copy_limits(&p.limits, out);
	in->vkGetPhysicalDeviceMemoryProperties(device, &out->memory);
	s = find_queue(in, device, out);
	if (s.result < 0 || p.apiVersion < VK_API_VERSION_1_1) return s;
	extensions has = {0};
	s = find_extensions(in, device, &has);
	if (s.result < 0) return s;
	out->portability_subset = has.portability;
	query_newer(in, device, &has, out);
	return GV_OK;
}
