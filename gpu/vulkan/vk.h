// The part of Vulkan's binary interface that this package calls, written from the
// Vulkan 1.3 specification so that no headers are needed to build. Structures have the
// specification's names and layout; runs of members that nothing here reads are arrays
// named unused…. abi_test.go compares sizes, offsets and values with the headers of a
// machine that has them.
#ifndef GV_VK_H
#define GV_VK_H

#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32
#define VKAPI_PTR __stdcall
#else
#define VKAPI_PTR
#endif

typedef uint32_t VkBool32;
typedef uint32_t VkFlags;
typedef uint64_t VkDeviceSize;
typedef int32_t VkResult;
typedef int32_t VkStructureType;

// Handles of objects with a dispatch table are pointers, all others have 64 bits on
// every platform.
typedef struct VkInstance_T *VkInstance;
typedef struct VkPhysicalDevice_T *VkPhysicalDevice;
typedef struct VkDevice_T *VkDevice;
typedef struct VkQueue_T *VkQueue;
typedef struct VkCommandBuffer_T *VkCommandBuffer;
typedef uint64_t VkBuffer;
typedef uint64_t VkBufferView;
typedef uint64_t VkCommandPool;
typedef uint64_t VkDebugUtilsMessengerEXT;
typedef uint64_t VkDescriptorPool;
typedef uint64_t VkDescriptorSet;
typedef uint64_t VkDescriptorSetLayout;
typedef uint64_t VkDeviceMemory;
typedef uint64_t VkFence;
typedef uint64_t VkPipeline;
typedef uint64_t VkPipelineCache;
typedef uint64_t VkPipelineLayout;
typedef uint64_t VkQueryPool;
typedef uint64_t VkShaderModule;

typedef void(VKAPI_PTR *PFN_vkVoidFunction)(void);
typedef PFN_vkVoidFunction(VKAPI_PTR *PFN_vkGetInstanceProcAddr)(VkInstance, const char *);

#define VK_API_VERSION_1_1 ((1u << 22) | (1u << 12))
#define VK_API_VERSION_1_2 ((1u << 22) | (2u << 12))
#define VK_API_VERSION_1_3 ((1u << 22) | (3u << 12))

enum {
	VK_SUCCESS = 0,
	VK_TIMEOUT = 2,
	VK_INCOMPLETE = 5,
	VK_ERROR_OUT_OF_HOST_MEMORY = -1,
	VK_ERROR_OUT_OF_DEVICE_MEMORY = -2,
	VK_ERROR_INITIALIZATION_FAILED = -3,
	VK_ERROR_DEVICE_LOST = -4,
	VK_ERROR_MEMORY_MAP_FAILED = -5,
	VK_ERROR_LAYER_NOT_PRESENT = -6,
	VK_ERROR_EXTENSION_NOT_PRESENT = -7,
	VK_ERROR_FEATURE_NOT_PRESENT = -8,
	VK_ERROR_INCOMPATIBLE_DRIVER = -9,
	VK_ERROR_TOO_MANY_OBJECTS = -10,
	VK_ERROR_UNKNOWN = -13,
	VK_ERROR_OUT_OF_POOL_MEMORY = -1000069000,
	VK_ERROR_INVALID_SHADER_NV = -1000012000,
};

enum {
	VK_STRUCTURE_TYPE_APPLICATION_INFO = 0,
	VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO = 1,
	VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO = 2,
	VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO = 3,
	VK_STRUCTURE_TYPE_SUBMIT_INFO = 4,
	VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO = 5,
	VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE = 6,
	VK_STRUCTURE_TYPE_FENCE_CREATE_INFO = 8,
	VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO = 11,
	VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO = 12,
	VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO = 13,
	VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO = 16,
	VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO = 17,
	VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO = 18,
	VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO = 29,
	VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO = 30,
	VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO = 32,
	VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO = 33,
	VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO = 34,
	VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET = 35,
	VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO = 39,
	VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO = 40,
	VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO = 42,
	VK_STRUCTURE_TYPE_MEMORY_BARRIER = 46,
	VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2 = 1000059000,
	VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2 = 1000059001,
	VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES = 1000071004,
	VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES = 1000082000,
	VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES = 1000094000,
	VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT = 1000128004,
	VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES = 1000168000,
	VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES = 1000196000,
	VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT = 1000247000,
	VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES = 1000280000,
};

enum {
	VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR = 1,
	VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU = 1,
	VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU = 2,
	VK_PHYSICAL_DEVICE_TYPE_CPU = 4,
	VK_QUEUE_GRAPHICS_BIT = 1,
	VK_QUEUE_COMPUTE_BIT = 2,
	VK_MEMORY_HEAP_DEVICE_LOCAL_BIT = 1,
	VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT = 1,
	VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT = 2,
	VK_MEMORY_PROPERTY_HOST_COHERENT_BIT = 4,
	VK_MEMORY_PROPERTY_HOST_CACHED_BIT = 8,
	VK_BUFFER_USAGE_TRANSFER_SRC_BIT = 1,
	VK_BUFFER_USAGE_TRANSFER_DST_BIT = 2,
	VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT = 4,
	VK_BUFFER_USAGE_STORAGE_BUFFER_BIT = 32,
	VK_FORMAT_R32G32B32A32_UINT = 107,
	VK_SHADER_STAGE_COMPUTE_BIT = 32,
	VK_SUBGROUP_FEATURE_ARITHMETIC_BIT = 4,
	VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER = 4,
	VK_DESCRIPTOR_TYPE_STORAGE_BUFFER = 7,
	VK_PIPELINE_BIND_POINT_COMPUTE = 1,
	VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT = 2,
	VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT = 1,
	VK_QUERY_TYPE_TIMESTAMP = 2,
	VK_QUERY_RESULT_64_BIT = 1,
	VK_QUERY_RESULT_WAIT_BIT = 2,
	VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT = 0x800,
	VK_PIPELINE_STAGE_TRANSFER_BIT = 0x1000,
	VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT = 0x2000,
	VK_PIPELINE_STAGE_HOST_BIT = 0x4000,
	VK_ACCESS_SHADER_READ_BIT = 0x20,
	VK_ACCESS_SHADER_WRITE_BIT = 0x40,
	VK_ACCESS_TRANSFER_READ_BIT = 0x800,
	VK_ACCESS_TRANSFER_WRITE_BIT = 0x1000,
	VK_ACCESS_HOST_READ_BIT = 0x2000,
	VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT = 0x100,
	VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT = 0x1000,
	VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT = 2,
	VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT = 4,
	VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT = 4,
};

#define VK_WHOLE_SIZE (~0ull)

typedef struct VkApplicationInfo {
	VkStructureType sType;
	const void *pNext;
	const char *pApplicationName;
	uint32_t applicationVersion;
	const char *pEngineName;
	uint32_t engineVersion;
	uint32_t apiVersion;
} VkApplicationInfo;

typedef struct VkInstanceCreateInfo {
	VkStructureType sType;
	const void *pNext;
	VkFlags flags;
	const VkApplicationInfo *pApplicationInfo;
	uint32_t enabledLayerCount;
	const char *const *ppEnabledLayerNames;
	uint32_t enabledExtensionCount;
	const char *const *ppEnabledExtensionNames;
} VkInstanceCreateInfo;

typedef struct VkLayerProperties {
	char layerName[256];
	uint32_t specVersion;
	uint32_t implementationVersion;
	char description[256];
} VkLayerProperties;

typedef struct VkExtensionProperties {
	char extensionName[256];
	uint32_t specVersion;
} VkExtensionProperties;

typedef struct VkValidationFeaturesEXT {
	VkStructureType sType;
	const void *pNext;
	uint32_t enabledValidationFeatureCount;
	const int32_t *pEnabledValidationFeatures;
	uint32_t disabledValidationFeatureCount;
	const int32_t *pDisabledValidationFeatures;
} VkValidationFeaturesEXT;

typedef struct VkDebugUtilsMessengerCallbackDataEXT {
	VkStructureType sType;
	const void *pNext;
	VkFlags flags;
	const char *pMessageIdName;
	int32_t messageIdNumber;
	const char *pMessage;
	uint32_t queueLabelCount;
	const void *pQueueLabels;
	uint32_t cmdBufLabelCount;
	const void *pCmdBufLabels;
	uint32_t objectCount;
	const void *pObjects;
} VkDebugUtilsMessengerCallbackDataEXT;

typedef struct VkDebugUtilsMessengerCreateInfoEXT {
	VkStructureType sType;
	const void *pNext;
	VkFlags flags;
	VkFlags messageSeverity;
	VkFlags messageType;
	VkBool32(VKAPI_PTR *pfnUserCallback)(int32_t, VkFlags, const VkDebugUtilsMessengerCallbackDataEXT *, void *);
	void *pUserData;
} VkDebugUtilsMessengerCreateInfoEXT;

typedef struct VkPhysicalDeviceLimits {
	uint32_t unusedImages[5];
	uint32_t maxTexelBufferElements;
	uint32_t unusedUniformRange;
	uint32_t maxStorageBufferRange;
	uint32_t maxPushConstantsSize;
	uint32_t maxMemoryAllocationCount;
	uint32_t unusedSamplers;
	VkDeviceSize unusedSparse[2];
	uint32_t unusedSets[3];
	uint32_t maxPerStageDescriptorStorageBuffers;
	uint32_t maxPerStageDescriptorSampledImages;
	uint32_t unusedStage[2];
	uint32_t maxPerStageResources;
	uint32_t unusedSet[3];
	uint32_t maxDescriptorSetStorageBuffers;
	uint32_t unusedGraphics[26];
	uint32_t maxComputeSharedMemorySize;
	uint32_t maxComputeWorkGroupCount[3];
	uint32_t maxComputeWorkGroupInvocations;
	uint32_t maxComputeWorkGroupSize[3];
	uint32_t unusedViewports[13];
	size_t unusedMapAlignment;
	VkDeviceSize minTexelBufferOffsetAlignment;
	VkDeviceSize unusedUniformAlignment;
	VkDeviceSize minStorageBufferOffsetAlignment;
	uint32_t unusedTexels[22];
	float timestampPeriod;
	uint32_t unusedClip[12];
	VkDeviceSize unusedCopy[2];
	VkDeviceSize nonCoherentAtomSize;
} VkPhysicalDeviceLimits;

typedef struct VkPhysicalDeviceProperties {
	uint32_t apiVersion;
	uint32_t driverVersion;
	uint32_t vendorID;
	uint32_t deviceID;
	int32_t deviceType;
	char deviceName[256];
	uint8_t pipelineCacheUUID[16];
	VkPhysicalDeviceLimits limits;
	VkBool32 unusedSparse[5];
} VkPhysicalDeviceProperties;

typedef struct VkPhysicalDeviceProperties2 {
	VkStructureType sType;
	void *pNext;
	VkPhysicalDeviceProperties properties;
} VkPhysicalDeviceProperties2;

typedef struct VkPhysicalDeviceIDProperties {
	VkStructureType sType;
	void *pNext;
	uint8_t deviceUUID[16];
	uint8_t driverUUID[16];
	uint8_t unusedLUID[8];
	uint32_t unusedNodeMask;
	VkBool32 unusedLUIDValid;
} VkPhysicalDeviceIDProperties;

typedef struct VkPhysicalDeviceSubgroupProperties {
	VkStructureType sType;
	void *pNext;
	uint32_t subgroupSize;
	VkFlags supportedStages;
	VkFlags supportedOperations;
	VkBool32 unusedQuad;
} VkPhysicalDeviceSubgroupProperties;

typedef struct VkPhysicalDeviceMaintenance3Properties {
	VkStructureType sType;
	void *pNext;
	uint32_t maxPerSetDescriptors;
	VkDeviceSize maxMemoryAllocationSize;
} VkPhysicalDeviceMaintenance3Properties;

typedef struct VkPhysicalDeviceDriverProperties {
	VkStructureType sType;
	void *pNext;
	int32_t driverID;
	char driverName[256];
	char driverInfo[256];
	uint8_t unusedConformance[4];
} VkPhysicalDeviceDriverProperties;

typedef struct VkPhysicalDeviceFeatures2 {
	VkStructureType sType;
	void *pNext;
	VkBool32 unusedFeatures[55];
} VkPhysicalDeviceFeatures2;

typedef struct VkPhysicalDeviceShaderFloat16Int8Features {
	VkStructureType sType;
	void *pNext;
	VkBool32 shaderFloat16;
	VkBool32 shaderInt8;
} VkPhysicalDeviceShaderFloat16Int8Features;

typedef struct VkPhysicalDeviceShaderIntegerDotProductFeatures {
	VkStructureType sType;
	void *pNext;
	VkBool32 shaderIntegerDotProduct;
} VkPhysicalDeviceShaderIntegerDotProductFeatures;

typedef struct VkMemoryType {
	VkFlags propertyFlags;
	uint32_t heapIndex;
} VkMemoryType;

typedef struct VkMemoryHeap {
	VkDeviceSize size;
	VkFlags flags;
} VkMemoryHeap;

typedef struct VkPhysicalDeviceMemoryProperties {
	uint32_t memoryTypeCount;
	VkMemoryType memoryTypes[32];
	uint32_t memoryHeapCount;
	VkMemoryHeap memoryHeaps[16];
} VkPhysicalDeviceMemoryProperties;

typedef struct VkQueueFamilyProperties {
	VkFlags queueFlags;
	uint32_t queueCount;
	uint32_t timestampValidBits;
	uint32_t unusedGranularity[3];
} VkQueueFamilyProperties;

typedef struct VkDeviceQueueCreateInfo {
	VkStructureType sType;
	const void *pNext;
	VkFlags flags;
	uint32_t queueFamilyIndex;
	uint32_t queueCount;
	const float *pQueuePriorities;
} VkDeviceQueueCreateInfo;

typedef struct VkDeviceCreateInfo {
	VkStructureType sType;
	const void *pNext;
	VkFlags flags;
	uint32_t queueCreateInfoCount;
	const VkDeviceQueueCreateInfo *pQueueCreateInfos;
	uint32_t enabledLayerCount;
	const char *const *ppEnabledLayerNames;
	uint32_t enabledExtensionCount;
	const char *const *ppEnabledExtensionNames;
	const void *pEnabledFeatures;
} VkDeviceCreateInfo;

typedef struct VkBufferCreateInfo {
	VkStructureType sType;
	const void *pNext;
	VkFlags flags;
	VkDeviceSize size;
	VkFlags usage;
	int32_t sharingMode;
	uint32_t queueFamilyIndexCount;
	const uint32_t *pQueueFamilyIndices;
} VkBufferCreateInfo;

typedef struct VkBufferViewCreateInfo {
	VkStructureType sType;
	const void *pNext;
	VkFlags flags;
	VkBuffer buffer;
	int32_t format;
	VkDeviceSize offset;
	VkDeviceSize range;
} VkBufferViewCreateInfo;

typedef struct VkMemoryRequirements {
	VkDeviceSize size;
	VkDeviceSize alignment;
	uint32_t memoryTypeBits;
} VkMemoryRequirements;

typedef struct VkMemoryAllocateInfo {
	VkStructureType sType;
	const void *pNext;
	VkDeviceSize allocationSize;
	uint32_t memoryTypeIndex;
} VkMemoryAllocateInfo;

typedef struct VkMappedMemoryRange {
	VkStructureType sType;
	const void *pNext;
	VkDeviceMemory memory;
	VkDeviceSize offset;
	VkDeviceSize size;
} VkMappedMemoryRange;

typedef struct VkShaderModuleCreateInfo {
	VkStructureType sType;
	const void *pNext;
	VkFlags flags;
	size_t codeSize;
	const uint32_t *pCode;
} VkShaderModuleCreateInfo;

typedef struct VkPipelineCacheCreateInfo {
	VkStructureType sType;
	const void *pNext;
	VkFlags flags;
	size_t initialDataSize;
	const void *pInitialData;
} VkPipelineCacheCreateInfo;

typedef struct VkSpecializationMapEntry {
	uint32_t constantID;
	uint32_t offset;
	size_t size;
} VkSpecializationMapEntry;

typedef struct VkSpecializationInfo {
	uint32_t mapEntryCount;
	const VkSpecializationMapEntry *pMapEntries;
	size_t dataSize;
	const void *pData;
} VkSpecializationInfo;

typedef struct VkPipelineShaderStageCreateInfo {
	VkStructureType sType;
	const void *pNext;
	VkFlags flags;
	VkFlags stage;
	VkShaderModule module;
	const char *pName;
	const VkSpecializationInfo *pSpecializationInfo;
} VkPipelineShaderStageCreateInfo;

typedef struct VkComputePipelineCreateInfo {
	VkStructureType sType;
	const void *pNext;
	VkFlags flags;
	VkPipelineShaderStageCreateInfo stage;
	VkPipelineLayout layout;
	VkPipeline basePipelineHandle;
	int32_t basePipelineIndex;
} VkComputePipelineCreateInfo;

typedef struct VkPushConstantRange {
	VkFlags stageFlags;
	uint32_t offset;
	uint32_t size;
} VkPushConstantRange;

typedef struct VkPipelineLayoutCreateInfo {
	VkStructureType sType;
	const void *pNext;
	VkFlags flags;
	uint32_t setLayoutCount;
	const VkDescriptorSetLayout *pSetLayouts;
	uint32_t pushConstantRangeCount;
	const VkPushConstantRange *pPushConstantRanges;
} VkPipelineLayoutCreateInfo;

typedef struct VkDescriptorSetLayoutBinding {
	uint32_t binding;
	int32_t descriptorType;
	uint32_t descriptorCount;
	VkFlags stageFlags;
	const void *pImmutableSamplers;
} VkDescriptorSetLayoutBinding;

typedef struct VkDescriptorSetLayoutCreateInfo {
	VkStructureType sType;
	const void *pNext;
	VkFlags flags;
	uint32_t bindingCount;
	const VkDescriptorSetLayoutBinding *pBindings;
} VkDescriptorSetLayoutCreateInfo;

typedef struct VkDescriptorPoolSize {
	int32_t type;
	uint32_t descriptorCount;
} VkDescriptorPoolSize;

typedef struct VkDescriptorPoolCreateInfo {
	VkStructureType sType;
	const void *pNext;
	VkFlags flags;
	uint32_t maxSets;
	uint32_t poolSizeCount;
	const VkDescriptorPoolSize *pPoolSizes;
} VkDescriptorPoolCreateInfo;

typedef struct VkDescriptorSetAllocateInfo {
	VkStructureType sType;
	const void *pNext;
	VkDescriptorPool descriptorPool;
	uint32_t descriptorSetCount;
	const VkDescriptorSetLayout *pSetLayouts;
} VkDescriptorSetAllocateInfo;

typedef struct VkDescriptorBufferInfo {
	VkBuffer buffer;
	VkDeviceSize offset;
	VkDeviceSize range;
} VkDescriptorBufferInfo;

typedef struct VkWriteDescriptorSet {
	VkStructureType sType;
	const void *pNext;
	VkDescriptorSet dstSet;
	uint32_t dstBinding;
	uint32_t dstArrayElement;
	uint32_t descriptorCount;
	int32_t descriptorType;
	const void *pImageInfo;
	const VkDescriptorBufferInfo *pBufferInfo;
	const VkBufferView *pTexelBufferView;
} VkWriteDescriptorSet;

typedef struct VkCommandPoolCreateInfo {
	VkStructureType sType;
	const void *pNext;
	VkFlags flags;
	uint32_t queueFamilyIndex;
} VkCommandPoolCreateInfo;

typedef struct VkCommandBufferAllocateInfo {
	VkStructureType sType;
	const void *pNext;
	VkCommandPool commandPool;
	int32_t level;
	uint32_t commandBufferCount;
} VkCommandBufferAllocateInfo;

typedef struct VkCommandBufferBeginInfo {
	VkStructureType sType;
	const void *pNext;
	VkFlags flags;
	const void *pInheritanceInfo;
} VkCommandBufferBeginInfo;

typedef struct VkMemoryBarrier {
	VkStructureType sType;
	const void *pNext;
	VkFlags srcAccessMask;
	VkFlags dstAccessMask;
} VkMemoryBarrier;

typedef struct VkBufferCopy {
	VkDeviceSize srcOffset;
	VkDeviceSize dstOffset;
	VkDeviceSize size;
} VkBufferCopy;

typedef struct VkQueryPoolCreateInfo {
	VkStructureType sType;
	const void *pNext;
	VkFlags flags;
	int32_t queryType;
	uint32_t queryCount;
	VkFlags pipelineStatistics;
} VkQueryPoolCreateInfo;

typedef struct VkFenceCreateInfo {
	VkStructureType sType;
	const void *pNext;
	VkFlags flags;
} VkFenceCreateInfo;

typedef struct VkSubmitInfo {
	VkStructureType sType;
	const void *pNext;
	uint32_t waitSemaphoreCount;
	const void *pWaitSemaphores;
	const VkFlags *pWaitDstStageMask;
	uint32_t commandBufferCount;
	const VkCommandBuffer *pCommandBuffers;
	uint32_t signalSemaphoreCount;
	const void *pSignalSemaphores;
} VkSubmitInfo;

// Functions, as F(result, name, parameters). The last parameter of most is an allocator
// that is never given.
#define GV_GLOBAL_FUNCTIONS(F)                                                                      \
	F(VkResult, vkEnumerateInstanceVersion, (uint32_t *))                                       \
	F(VkResult, vkEnumerateInstanceLayerProperties, (uint32_t *, VkLayerProperties *))          \
	F(VkResult, vkEnumerateInstanceExtensionProperties, (const char *, uint32_t *, VkExtensionProperties *)) \
	F(VkResult, vkCreateInstance, (const VkInstanceCreateInfo *, const void *, VkInstance *))

#define GV_INSTANCE_FUNCTIONS(F)                                                                    \
	F(void, vkDestroyInstance, (VkInstance, const void *))                                      \
	F(VkResult, vkEnumeratePhysicalDevices, (VkInstance, uint32_t *, VkPhysicalDevice *))       \
	F(void, vkGetPhysicalDeviceProperties, (VkPhysicalDevice, VkPhysicalDeviceProperties *))    \
	F(void, vkGetPhysicalDeviceProperties2, (VkPhysicalDevice, VkPhysicalDeviceProperties2 *))  \
	F(void, vkGetPhysicalDeviceFeatures2, (VkPhysicalDevice, VkPhysicalDeviceFeatures2 *))      \
	F(void, vkGetPhysicalDeviceMemoryProperties, (VkPhysicalDevice, VkPhysicalDeviceMemoryProperties *)) \
	F(void, vkGetPhysicalDeviceQueueFamilyProperties, (VkPhysicalDevice, uint32_t *, VkQueueFamilyProperties *)) \
	F(VkResult, vkEnumerateDeviceExtensionProperties, (VkPhysicalDevice, const char *, uint32_t *, VkExtensionProperties *)) \
	F(VkResult, vkCreateDevice, (VkPhysicalDevice, const VkDeviceCreateInfo *, const void *, VkDevice *)) \
	F(PFN_vkVoidFunction, vkGetDeviceProcAddr, (VkDevice, const char *))

#define GV_DEBUG_FUNCTIONS(F)                                                                       \
	F(VkResult, vkCreateDebugUtilsMessengerEXT, (VkInstance, const VkDebugUtilsMessengerCreateInfoEXT *, const void *, VkDebugUtilsMessengerEXT *)) \
	F(void, vkDestroyDebugUtilsMessengerEXT, (VkInstance, VkDebugUtilsMessengerEXT, const void *))

#define GV_DEVICE_FUNCTIONS(F)                                                                      \
	F(void, vkDestroyDevice, (VkDevice, const void *))                                          \
	F(void, vkGetDeviceQueue, (VkDevice, uint32_t, uint32_t, VkQueue *))                        \
	F(VkResult, vkQueueSubmit, (VkQueue, uint32_t, const VkSubmitInfo *, VkFence))              \
	F(VkResult, vkCreateBuffer, (VkDevice, const VkBufferCreateInfo *, const void *, VkBuffer *)) \
	F(void, vkDestroyBuffer, (VkDevice, VkBuffer, const void *))                                \
	F(VkResult, vkCreateBufferView, (VkDevice, const VkBufferViewCreateInfo *, const void *, VkBufferView *)) \
	F(void, vkDestroyBufferView, (VkDevice, VkBufferView, const void *))                        \
	F(void, vkGetBufferMemoryRequirements, (VkDevice, VkBuffer, VkMemoryRequirements *))        \
	F(VkResult, vkAllocateMemory, (VkDevice, const VkMemoryAllocateInfo *, const void *, VkDeviceMemory *)) \
	F(void, vkFreeMemory, (VkDevice, VkDeviceMemory, const void *))                             \
	F(VkResult, vkBindBufferMemory, (VkDevice, VkBuffer, VkDeviceMemory, VkDeviceSize))         \
	F(VkResult, vkMapMemory, (VkDevice, VkDeviceMemory, VkDeviceSize, VkDeviceSize, VkFlags, void **)) \
	F(VkResult, vkFlushMappedMemoryRanges, (VkDevice, uint32_t, const VkMappedMemoryRange *))   \
	F(VkResult, vkInvalidateMappedMemoryRanges, (VkDevice, uint32_t, const VkMappedMemoryRange *)) \
	F(VkResult, vkCreateShaderModule, (VkDevice, const VkShaderModuleCreateInfo *, const void *, VkShaderModule *)) \
	F(void, vkDestroyShaderModule, (VkDevice, VkShaderModule, const void *))                    \
	F(VkResult, vkCreatePipelineCache, (VkDevice, const VkPipelineCacheCreateInfo *, const void *, VkPipelineCache *)) \
	F(void, vkDestroyPipelineCache, (VkDevice, VkPipelineCache, const void *))                  \
	F(VkResult, vkGetPipelineCacheData, (VkDevice, VkPipelineCache, size_t *, void *))          \
	F(VkResult, vkCreateComputePipelines, (VkDevice, VkPipelineCache, uint32_t, const VkComputePipelineCreateInfo *, const void *, VkPipeline *)) \
	F(void, vkDestroyPipeline, (VkDevice, VkPipeline, const void *))                            \
	F(VkResult, vkCreatePipelineLayout, (VkDevice, const VkPipelineLayoutCreateInfo *, const void *, VkPipelineLayout *)) \
	F(void, vkDestroyPipelineLayout, (VkDevice, VkPipelineLayout, const void *))                \
	F(VkResult, vkCreateDescriptorSetLayout, (VkDevice, const VkDescriptorSetLayoutCreateInfo *, const void *, VkDescriptorSetLayout *)) \
	F(void, vkDestroyDescriptorSetLayout, (VkDevice, VkDescriptorSetLayout, const void *))      \
	F(VkResult, vkCreateDescriptorPool, (VkDevice, const VkDescriptorPoolCreateInfo *, const void *, VkDescriptorPool *)) \
	F(void, vkDestroyDescriptorPool, (VkDevice, VkDescriptorPool, const void *))                \
	F(VkResult, vkAllocateDescriptorSets, (VkDevice, const VkDescriptorSetAllocateInfo *, VkDescriptorSet *)) \
	F(void, vkUpdateDescriptorSets, (VkDevice, uint32_t, const VkWriteDescriptorSet *, uint32_t, const void *)) \
	F(VkResult, vkCreateCommandPool, (VkDevice, const VkCommandPoolCreateInfo *, const void *, VkCommandPool *)) \
	F(void, vkDestroyCommandPool, (VkDevice, VkCommandPool, const void *))                      \
	F(VkResult, vkAllocateCommandBuffers, (VkDevice, const VkCommandBufferAllocateInfo *, VkCommandBuffer *)) \
	F(void, vkFreeCommandBuffers, (VkDevice, VkCommandPool, uint32_t, const VkCommandBuffer *)) \
	F(VkResult, vkBeginCommandBuffer, (VkCommandBuffer, const VkCommandBufferBeginInfo *))      \
	F(VkResult, vkEndCommandBuffer, (VkCommandBuffer))                                          \
	F(void, vkCmdBindPipeline, (VkCommandBuffer, int32_t, VkPipeline))                          \
	F(void, vkCmdBindDescriptorSets, (VkCommandBuffer, int32_t, VkPipelineLayout, uint32_t, uint32_t, const VkDescriptorSet *, uint32_t, const uint32_t *)) \
	F(void, vkCmdPushConstants, (VkCommandBuffer, VkPipelineLayout, VkFlags, uint32_t, uint32_t, const void *)) \
	F(void, vkCmdDispatch, (VkCommandBuffer, uint32_t, uint32_t, uint32_t))                     \
	F(void, vkCmdCopyBuffer, (VkCommandBuffer, VkBuffer, VkBuffer, uint32_t, const VkBufferCopy *)) \
	F(void, vkCmdFillBuffer, (VkCommandBuffer, VkBuffer, VkDeviceSize, VkDeviceSize, uint32_t)) \
	F(void, vkCmdPipelineBarrier, (VkCommandBuffer, VkFlags, VkFlags, VkFlags, uint32_t, const VkMemoryBarrier *, uint32_t, const void *, uint32_t, const void *)) \
	F(void, vkCmdResetQueryPool, (VkCommandBuffer, VkQueryPool, uint32_t, uint32_t))            \
	F(void, vkCmdWriteTimestamp, (VkCommandBuffer, VkFlags, VkQueryPool, uint32_t))             \
	F(VkResult, vkCreateQueryPool, (VkDevice, const VkQueryPoolCreateInfo *, const void *, VkQueryPool *)) \
	F(void, vkDestroyQueryPool, (VkDevice, VkQueryPool, const void *))                          \
	F(VkResult, vkGetQueryPoolResults, (VkDevice, VkQueryPool, uint32_t, uint32_t, size_t, void *, VkDeviceSize, VkFlags)) \
	F(VkResult, vkCreateFence, (VkDevice, const VkFenceCreateInfo *, const void *, VkFence *))  \
	F(void, vkDestroyFence, (VkDevice, VkFence, const void *))                                  \
	F(VkResult, vkResetFences, (VkDevice, uint32_t, const VkFence *))                           \
	F(VkResult, vkWaitForFences, (VkDevice, uint32_t, const VkFence *, VkBool32, uint64_t))

#endif
