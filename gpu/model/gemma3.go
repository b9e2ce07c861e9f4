package model

import (
	"math"

	"ganglion/gpu/ops"
)

// gemma3 is Gemma 3: norms before and after attention and feed-forward, RMSNorm on
// the heads of q and k, five local layers to one global, GELU gate, embeddings
// scaled by √n_embd. Local layers rotate with base 10000 and no scaling. The "+1"
// of Gemma's norms is already in the file.
func gemma3(g *graph) error {
	const period = 6
	x := g.embed(float32(math.Sqrt(float64(g.embd))))
	localBase := g.ropeBaseSWA
	if localBase == 0 {
		localBase = 10000
	}
	global := attention{table: g.ropeTable(g.ropeBase, true), neox: true}
	if g.blocks == 62 && g.attnScale == 0 {
		// The 27B model scales by the width per head of the residual stream; the
		// reference knows it by its depth, for the file does not say.
		global.scale = 1 / math.Sqrt(float64(g.embd)/float64(g.heads[0]))
	}
	local := global
	local.table, local.window = g.ropeTable(localBase, false), g.window

	for g.il = 0; g.il < g.blocks; g.il++ {
		a := global
		if g.local(g.il, period) {
			a = local
		}
		h := g.attend(a, g.norm("attn_norm", x))
		g.outputs(&h, &x)
		h = g.norm("post_attention_norm", g.linear("attn_output", h, g.embd))
		x = g.Sum("attn_residual", h, x)
		f := g.feedForward(ops.GELU, g.norm("ffn_norm", x))
		x = g.Sum("ffn_residual", g.norm("post_ffw_norm", f), x)
	}
	g.head(x)
	return nil
}
