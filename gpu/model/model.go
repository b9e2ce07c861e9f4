// Package model turns a model file into a plan: one short file per architecture
// family, put together from shared blocks (attention, feed-forward, mixture of
// experts). [New] is the one visible switch.
//
// Everything comes from metadata and tensors, nothing from a model's name; a key
// that real files leave out has the default of the reference implementation
// (llama.cpp, see the comments at each key). Optional tensors (biases, Q/K norms,
// fused QKV) are used where they are present, whatever the architecture. The
// package imports gpu/ops and gpu/gguf and knows no backend.
package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ganglion/gpu/ops"
)

// ErrUnknown is wrapped by the error for an architecture without a builder.
var ErrUnknown = errors.New("unknown architecture")

// builder makes the plan of one architecture family.
type builder func(*graph) error

// families maps GGUF general.architecture to its builder.
var families = map[string]builder{
	"afmoe":          afmoe,
	"apertus":        apertus,
	"arcee":          arcee.build,
	"arctic":         arctic,
	"baichuan":       baichuan,
	"bailingmoe":     bailingMoE,
	"bailingmoe2":    bailingMoE2,
	"bitnet":         bitnet,
	"bloom":          bloom.build,
	"chatglm":        chatglm.build,
	"codeshell":      codeshell.build,
	"cogvlm":         cogvlm,
	"cohere2":        cohere2,
	"cohere2moe":     cohere2MoE,
	"command-r":      commandR,
	"dbrx":           dbrx,
	"deci":           deci,
	"deepseek":       deepseek,
	"deepseek2":      deepseek2,
	"deepseek2-ocr":  deepseek2OCR,
	"dots1":          dots1,
	"ernie4_5":       ernie45,
	"ernie4_5-moe":   ernie45MoE,
	"exaone":         exaone.build,
	"exaone-moe":     exaoneMoE,
	"exaone4":        exaone4,
	"falcon":         falcon,
	"falcon-h1":      falconH1,
	"gemma":          gemma,
	"gemma2":         gemma2,
	"gemma3":         gemma3,
	"gemma4":         gemma4,
	"glm4":           glm4.build,
	"glm4moe":        glm4MoE,
	"gpt-oss":        gptOSS,
	"gpt2":           gpt2.build,
	"gptneox":        gptneox,
	"granite":        granite,
	"granite_swa":    graniteSWA,
	"granitehybrid":  graniteHybrid,
	"granitemoe":     graniteMoE,
	"grok":           grok,
	"grovemoe":       groveMoE,
	"hrm_text":       hrmText,
	"hunyuan-dense":  hunyuanDense,
	"hunyuan-moe":    hunyuanMoE,
	"hunyuan_vl":     hunyuanVL,
	"hy_v3":          hyV3,
	"internlm2":      internlm2.build,
	"jais":           jais.build,
	"jais2":          nemotron.build,
	"jamba":          jamba,
	"laguna":         laguna,
	"lfm2":           lfm2,
	"lfm2moe":        lfm2moe,
	"llama":          llama.build,
	"llama4":         llama4,
	"maincoder":      maincoder.build,
	"mamba":          mamba,
	"mamba2":         mambaTwo,
	"maple":          maple,
	"mellum":         mellum,
	"mimo2":          mimo2,
	"minicpm":        minicpm,
	"minicpm3":       minicpm3,
	"minimax-01":     minimax01,
	"minimax-m2":     minimaxM2,
	"mistral3":       mistral3.build,
	"mistral4":       deepseek2,
	"mpt":            mpt.build,
	"muse-glimmer":   museGlimmer,
	"nanbeige":       nanbeige,
	"nemotron":       nemotron.build,
	"nemotron_h":     nemotronH,
	"nemotron_h_moe": nemotronH,
	"olmo":           olmo.build,
	"olmo2":          olmo2,
	"olmoe":          olmoe,
	"openelm":        openelm.build,
	"orion":          orion.build,
	"paddleocr":      paddleocr.build,
	"pangu-embedded": pangu.build,
	"phi2":           phi2,
	"phi3":           phi3.build,
	"phimoe":         phiMoE,
	"plamo":          plamo,
	"plamo2":         plamo2,
	"plamo3":         plamo3,
	"plm":            plm,
	"pockettts":      pockettts.build,
	"qwen":           qwen,
	"qwen2":          qwen2.build,
	"qwen2moe":       qwen2moe,
	"qwen2vl":        qwen2vl,
	"qwen3":          qwen3.build,
	"qwen35":         qwen35,
	"qwen35moe":      qwen35moe,
	"qwen3moe":       qwen3moe,
	"qwen3next":      qwen3next,
	"qwen3vl":        qwen3vl.build,
	"qwen3vlmoe":     qwen3vlmoe,
	"refact":         refact,
	"seed_oss":       seedOSS.build,
	"smallthinker":   smallThinker,
	"smollm3":        smollm3,
	"spark2_5":       spark25,
	"stablelm":       stablelm,
	"starcoder":      gpt2.build,
	"starcoder2":     starcoder2.build,
	"step35":         step35,
	"talkie":         talkie,
	"xverse":         internlm2.build,
}

// Architectures lists the known values of general.architecture, sorted.
func Architectures() []string {
	names := make([]string, 0, len(families))
	for n := range families {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Options are the parts of a plan that depend on configuration, not on the file.
type Options struct {
	// Context is the context length the model will run with: LongRoPE chooses its
	// factors by it. 0 means the trained length.
	Context int
	// Adapters are the LoRA files to carry, in the order of the columns of
	// ops.Batch.Scales.
	Adapters []Adapter
}

// New builds and validates the plan of a model file. The plan's weights alias the
// file's mapping.
func New(f Source, o Options) (*ops.Plan, error) {
	arch, ok := f.String("general.architecture")
	if !ok {
		return nil, errors.New(`model: the file has no key "general.architecture"`)
	}
	family, ok := families[arch]
	if !ok {
		return nil, fmt.Errorf("model: %w %q; known are %s", ErrUnknown, arch, strings.Join(Architectures(), ", "))
	}
	src := newAudit(f)
	plan, err := build(src, arch, family, o)
	if bad := src.faults(); bad != nil {
		err = bad // the cause of whatever else failed
	}
	if err != nil {
		return nil, fmt.Errorf("model: %s: %w", arch, err)
	}
	return plan, nil
}

// build makes the plan and checks it.
func build(src *audit, arch string, family builder, o Options) (*ops.Plan, error) {
	p, err := readParams(src, arch, o)
	if err != nil {
		return nil, err
	}
	g := &graph{Builder: ops.NewBuilder(arch), params: p, src: src, loaded: map[string]*ops.Weight{}, keys: &reader{src: src, arch: arch}, last: p.blocks - 1}
	if err := family(g); err != nil {
		return nil, err
	}
	if err := g.failed(); err != nil {
		return nil, err
	}
	if err := src.leftovers(p.blocks); err != nil {
		return nil, err
	}
	if err := adapt(g.Plan, src, arch, o.Adapters); err != nil {
		return nil, err
	}
	return g.Plan, g.Plan.Validate()
}
