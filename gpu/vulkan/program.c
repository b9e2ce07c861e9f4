// Layouts, pipelines and recorded programs.
#include "internal.h"

#include <stdlib.h>

gv_status gv_layout_create(gv_device *d, uint32_t bindings, uint64_t texels, uint32_t push_bytes, gv_layout *out) {
	VkDescriptorSetLayoutBinding *all = calloc(bindings ? bindings : 1, sizeof *all);
	if (!all) return gv_result(VK_ERROR_OUT_OF_HOST_MEMORY, "calloc");
	for (uint32_t i = 0; i < bindings; i++)
		all[i] = (VkDescriptorSetLayoutBinding){
			.binding = i,
			.descriptorType = texels >> i & 1 ? VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
			.descriptorCount = 1,
			.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
		};
	VkDescriptorSetLayoutCreateInfo set = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = bindings, .pBindings = all};
	VkResult r = d->vkCreateDescriptorSetLayout(d->handle, &set, NULL, &out->set);
	free(all);
	if (r < 0) return gv_result(r, "vkCreateDescriptorSetLayout");
	VkPushConstantRange push = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = push_bytes};
	VkPipelineLayoutCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
		.setLayoutCount = 1,
		.pSetLayouts = &out->set,
		.pushConstantRangeCount = push_bytes ? 1 : 0,
		.pPushConstantRanges = &push,
	};
	r = d->vkCreatePipelineLayout(d->handle, &info, NULL, &out->pipeline);
	if (r >= 0) return GV_OK;
	d->vkDestroyDescriptorSetLayout(d->handle, out->set, NULL);
	return gv_result(r, "vkCreatePipelineLayout");
}

void gv_layout_destroy(gv_device *d, gv_layout *l) {
	d->vkDestroyPipelineLayout(d->handle, l->pipeline, NULL);
	d->vkDestroyDescriptorSetLayout(d->handle, l->set, NULL);
}

gv_status gv_cache_create(gv_device *d, const void *data, size_t size, VkPipelineCache *out) {
	VkPipelineCacheCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO, .initialDataSize = size, .pInitialData = data};
	GV_TRY(d, vkCreatePipelineCache, d->handle, &info, NULL, out);
	return GV_OK;
}

gv_status gv_cache_data(gv_device *d, VkPipelineCache cache, size_t *size, void *data) {
	GV_TRY(d, vkGetPipelineCacheData, d->handle, cache, size, data);
	return GV_OK;
}

void gv_cache_destroy(gv_device *d, VkPipelineCache cache) { d->vkDestroyPipelineCache(d->handle, cache, NULL); }

gv_status gv_pipeline_create(gv_device *d, VkPipelineCache cache, VkPipelineLayout layout, const uint32_t *spirv, size_t bytes,
			     const uint32_t *constants, uint32_t count, VkPipeline *out) {
	VkSpecializationMapEntry *entries = calloc(count ? count : 1, sizeof *entries);
	if (!entries) return gv_result(VK_ERROR_OUT_OF_HOST_MEMORY, "calloc");
	for (uint32_t i = 0; i < count; i++)
		entries[i] = (VkSpecializationMapEntry){.constantID = i, .offset = i * 4, .size = 4};
	VkSpecializationInfo values = {.mapEntryCount = count, .pMapEntries = entries, .dataSize = count * 4, .pData = constants};
	VkShaderModule module = 0;
	VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = bytes, .pCode = spirv};
	const char *where = "vkCreateShaderModule";
	VkResult r = d->vkCreateShaderModule(d->handle, &code, NULL, &module);
	if (r >= 0) {
		VkComputePipelineCreateInfo info = {
			.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
			.stage = {
				.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
				.stage = VK_SHADER_STAGE_COMPUTE_BIT,
				.module = module,
				.pName = "main",
				.pSpecializationInfo = count ? &values : NULL,
			},
			.layout = layout,
			.basePipelineIndex = -1,
		};
		where = "vkCreateComputePipelines";
		r = d->vkCreateComputePipelines(d->handle, cache, 1, &info, NULL, out);
		// Drivers have been seen to report success without a pipeline.
		if (r >= 0 && *out == 0) r = VK_ERROR_UNKNOWN;
		d->vkDestroyShaderModule(d->handle, module, NULL);
	}
	free(entries);
	return r < 0 ? gv_result(r, where) : GV_OK;
}

void gv_pipeline_destroy(gv_device *d, VkPipeline p) { d->vkDestroyPipeline(d->handle, p, NULL); }

// descriptors is what the descriptor sets of a recording are written with.
typedef struct descriptors {
	VkDescriptorSet *sets;
	VkDescriptorBufferInfo *infos;
	VkWriteDescriptorSet *writes;
} descriptors;

static void free_descriptors(descriptors *a) {
	free(a->sets);
	free(a->infos);
	free(a->writes);
}

static gv_status create_view(gv_device *d, const gv_range *g, gv_program *p) {
	VkBufferViewCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO,
		.buffer = g->buffer,
		.format = VK_FORMAT_R32G32B32A32_UINT,
		.offset = g->offset,
		.range = g->size,
	};
	GV_TRY(d, vkCreateBufferView, d->handle, &info, NULL, &p->views[p->view_count]);
	p->view_count++;
	return GV_OK;
}

// fill_set allocates a descriptor set and prepares what it is written with.
static gv_status fill_set(gv_device *d, const gv_recording *r, uint32_t set, descriptors *a, gv_program *p) {
	const gv_set *s = &r->sets[set];
	VkDescriptorSetAllocateInfo info = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
		.descriptorPool = p->pool,
		.descriptorSetCount = 1,
		.pSetLayouts = &s->layout,
	};
	GV_TRY(d, vkAllocateDescriptorSets, d->handle, &info, &a->sets[set]);
	for (uint32_t j = 0; j < s->count; j++) {
		const gv_range *g = &r->ranges[s->first + j];
		VkWriteDescriptorSet *w = &a->writes[s->first + j];
		*w = (VkWriteDescriptorSet){
			.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
			.dstSet = a->sets[set],
			.dstBinding = j,
			.descriptorCount = 1,
			.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
			.pBufferInfo = &a->infos[s->first + j],
		};
		a->infos[s->first + j] = (VkDescriptorBufferInfo){.buffer = g->buffer, .offset = g->offset, .range = g->size};
		if (g->texels) {
			w->descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER;
			w->pTexelBufferView = &p->views[p->view_count];
			gv_status made = create_view(d, g, p);
			if (made.result < 0) return made;
		}
	}
	return GV_OK;
}

// create_sets makes the descriptor sets of a recording, written once for all submissions.
static gv_status create_sets(gv_device *d, const gv_recording *r, descriptors *a, gv_program *p) {
	if (r->set_count == 0) return GV_OK;
	a->sets = calloc(r->set_count, sizeof *a->sets);
	a->infos = calloc(r->range_count, sizeof *a->infos);
	a->writes = calloc(r->range_count, sizeof *a->writes);
	p->views = calloc(r->texel_count + 1, sizeof *p->views);
	if (!a->sets || !a->infos || !a->writes || !p->views) return gv_result(VK_ERROR_OUT_OF_HOST_MEMORY, "calloc");
	VkDescriptorPoolSize sizes[2] = {0};
	uint32_t n = 0;
	if (r->range_count > r->texel_count)
		sizes[n++] = (VkDescriptorPoolSize){VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, r->range_count - r->texel_count};
	if (r->texel_count) sizes[n++] = (VkDescriptorPoolSize){VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, r->texel_count};
	VkDescriptorPoolCreateInfo pool = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = r->set_count, .poolSizeCount = n, .pPoolSizes = sizes};
	GV_TRY(d, vkCreateDescriptorPool, d->handle, &pool, NULL, &p->pool);
	for (uint32_t i = 0; i < r->set_count; i++) {
		gv_status s = fill_set(d, r, i, a, p);
		if (s.result < 0) return s;
	}
	d->vkUpdateDescriptorSets(d->handle, r->range_count, a->writes, 0, NULL);
	return GV_OK;
}

static gv_status record(gv_device *d, const gv_recording *r, const VkDescriptorSet *sets, const gv_program *p) {
	const VkFlags shader = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, uses = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
	VkCommandBuffer c = p->commands;
	VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO}; // submitted many times
	GV_TRY(d, vkBeginCommandBuffer, c, &begin);
	if (p->queries) {
		d->vkCmdResetQueryPool(c, p->queries, 0, r->command_count + 1);
		d->vkCmdWriteTimestamp(c, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, p->queries, 0);
	}
	// Programs and transfers that were submitted before may have written what this reads.
	gv_barrier(d, c, shader | VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, shader, uses);
	VkPipeline pipeline = 0;
	uint32_t set = GV_NO_SET;
	for (uint32_t i = 0; i < r->command_count; i++) {
		const gv_command *k = &r->commands[i];
		if (k->barrier && i > 0) gv_barrier(d, c, shader, VK_ACCESS_SHADER_WRITE_BIT, shader, uses);
		if (k->pipeline != pipeline) {
			d->vkCmdBindPipeline(c, VK_PIPELINE_BIND_POINT_COMPUTE, k->pipeline);
			set = GV_NO_SET; // of another layout, perhaps
		}
		if (k->set != set && k->set != GV_NO_SET)
			d->vkCmdBindDescriptorSets(c, VK_PIPELINE_BIND_POINT_COMPUTE, k->layout, 0, 1, &sets[k->set], 0, NULL);
		pipeline = k->pipeline;
		set = k->set;
		if (k->param_bytes)
			d->vkCmdPushConstants(c, k->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, k->param_bytes, r->params + k->param_offset);
		d->vkCmdDispatch(c, k->groups[0], k->groups[1], k->groups[2]);
		if (p->queries) d->vkCmdWriteTimestamp(c, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, p->queries, i + 1);
	}
	gv_barrier(d, c, shader, VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
	GV_TRY(d, vkEndCommandBuffer, c);
	return GV_OK;
}

static gv_status create_objects(gv_device *d, const gv_recording *r, gv_program *p) {
	gv_status s = gv_create_fence(d, &p->fence);
	if (s.result >= 0) s = gv_allocate_commands(d, d->programs, &p->commands);
	if (s.result >= 0 && r->timed) {
		VkQueryPoolCreateInfo queries = {
			.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
			.queryType = VK_QUERY_TYPE_TIMESTAMP,
			.queryCount = r->command_count + 1,
		};
		GV_TRY(d, vkCreateQueryPool, d->handle, &queries, NULL, &p->queries);
	}
	return s;
}

gv_status gv_program_create(gv_device *d, const gv_recording *r, gv_program *out) {
	*out = (gv_program){0};
	descriptors a = {0};
	gv_status s = create_objects(d, r, out);
	if (s.result >= 0) s = create_sets(d, r, &a, out);
	if (s.result >= 0) s = record(d, r, a.sets, out);
	free_descriptors(&a);
	if (s.result < 0) gv_program_destroy(d, out);
	return s;
}

void gv_program_destroy(gv_device *d, gv_program *p) {
	if (p->commands) d->vkFreeCommandBuffers(d->handle, d->programs, 1, &p->commands);
	d->vkDestroyQueryPool(d->handle, p->queries, NULL);
	d->vkDestroyDescriptorPool(d->handle, p->pool, NULL);
	for (uint32_t i = 0; i < p->view_count; i++) d->vkDestroyBufferView(d->handle, p->views[i], NULL);
	free(p->views);
	d->vkDestroyFence(d->handle, p->fence, NULL);
	*p = (gv_program){0};
}

gv_status gv_times(gv_device *d, VkQueryPool queries, uint32_t count, uint64_t *out) {
	GV_TRY(d, vkGetQueryPoolResults, d->handle, queries, 0, count, count * sizeof *out, out, sizeof *out,
	       VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
	return GV_OK;
}
