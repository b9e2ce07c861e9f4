package ops

// Op is one operation of a plan. The set is closed: a backend switches over the
// concrete types and refuses what it does not know with ErrUnsupported.
type Op interface {
	// Name is the operation's kernel name, such as "matmul".
	Name() string
	// Reads and Writes list the activation views the operation touches.
	Reads() []View
	Writes() []View

	// weights lists the weights the operation needs and those it can do without.
	weights() (needed, optional []*Weight)
	check(p *Plan) error
}

// Act is an activation function.
type Act uint8

// The activation functions. GELU is the tanh form, in exact mode of halves (Apply);
// GELUErf the exact one, GELUQuick x·σ(1.702x).
const (
	Identity Act = iota
	SiLU
	GELU
	GELUErf
	GELUQuick
	ReLU
	ReLU2
	Sigmoid
	Tanh
	Softplus
	Exponential
)

// Embed reads rows of a table: out = Table[token] × Scale. With ByPosition the
// row is the position instead (learned positions). Rows whose token is -1 come
// from Batch.Embeds, unscaled, when the table is as wide as Plan.Embed; a table of
// another width (embeddings per layer) gives its row 0, the padding token, instead.
type Embed struct {
	Table      *Weight // [vocab, width]
	Scale      float32
	ByPosition bool
	Out        View
}

// Deepstack adds a further slice of the input embedding (Qwen3-VL): out = in +
// Batch.Embeds[Slice·Plan.Embed:][:Plan.Embed] for rows whose token is -1; rows of text
// are copied as they are. Slice 0 is what Embed gives.
type Deepstack struct {
	Slice   int // 1 … Plan.Slices
	In, Out View
}

// Rows picks the output rows: out[i] = in[Batch.Outs[i]].
type Rows struct{ In, Out View }

// MatMul is out = W·in + Bias for every row.
type MatMul struct {
	W    *Weight // [out, in]
	Bias *Weight // [out], optional
	In   View
	Out  View
}

// RMSNorm is x / sqrt(mean(x²)+Eps) · W over groups of Group columns (0: the
// whole view). W has Group elements, or one per column, or is nil.
type RMSNorm struct {
	W     *Weight
	Eps   float32
	Group int
	In    View
	Out   View
}

// LayerNorm is (x − mean)/sqrt(var+Eps) · W + Bias over groups of Group columns.
type LayerNorm struct {
	W, Bias *Weight
	Eps     float32
	Group   int
	In      View
	Out     View
}

// L2Norm is x / sqrt(Σx² + Eps) over groups of Group columns.
type L2Norm struct {
	Eps   float32
	Group int
	In    View
	Out   View
}

// Binary combines two views of equal width, or repeats B over A's columns when B
// is narrower and divides it.
type Binary struct {
	Kind BinaryKind
	A, B View
	Out  View
}

// BinaryKind is the arithmetic of a Binary.
type BinaryKind uint8

// The kinds of Binary.
const (
	AddKind BinaryKind = iota
	MulKind
)

// AddVec adds (or, with Mul, multiplies) a weight vector to every row; the vector
// repeats over the columns when it is narrower (one scale per head, say).
type AddVec struct {
	W   *Weight
	Mul bool
	In  View
	Out View
}

// Scale is out = in × Factor + Offset, clamped to ±Clamp when Clamp > 0. Factor is
// taken as it is: 0 gives Offset everywhere.
type Scale struct {
	Factor, Offset, Clamp float32
	In, Out               View
}

// Unary applies an activation function.
type Unary struct {
	Act     Act
	In, Out View
}

// GLU is act(gate) · (up + UpOffset). Limit > 0 clamps the gate from above and
// up to ±Limit first; Alpha > 0 replaces act by gate·σ(Alpha·gate) (gpt-oss).
type GLU struct {
	Act           Act
	Limit, Alpha  float32
	UpOffset      float32
	Gate, Up, Out View
}

// Softcap is Cap·tanh(x/Cap).
type Softcap struct {
	Cap     float32
	In, Out View
}

// PosScale multiplies row r by ln(⌊(Pos+Offset)/Floor⌋+1)·Scale + 1, the
// position-dependent attention temperature of mistral3 and llama4. The host
// computes the factor of each row with At.
type PosScale struct {
	Floor   float32
	Offset  float32
	Scale   float32
	In, Out View
}

// RoPE rotates NRot columns of every head, from column Start, by the table's angle
// for the row's position, or for that of the pair's axis (RoPETable.Axes); the other
// columns are copied. NeoX rotates (i, i+NRot/2),
// otherwise pairs (2i, 2i+1).
type RoPE struct {
	Table   int // index into Plan.Tables
	HeadDim int
	Start   int // first rotated column of a head
	NeoX    bool
	In, Out View
}

// KVStore writes the rows' keys and values into a cache at their positions. It
// comes before the Attention operations that read the cache.
type KVStore struct {
	Cache int
	K, V  View
}

// Attention is softmax(Scale·q·kᵀ)·v over the row's own sequence, positions
// (Pos−Window, Pos], or those of the row's Span. Query head h reads KV head h / (Heads/KVHeads). Over a
// cache of halves queries and probabilities are halves, too.
type Attention struct {
	Cache   int
	Heads   int
	Scale   float32
	Window  int     // 0 = every earlier position
	Chunked bool    // only the row's chunk of Window positions, which begin at multiples of Window
	Softcap float32 // on scores, 0 = none
	Sinks   *Weight // [heads] extra logits of the softmax denominator, optional
	ALiBi   float32 // largest bias of ALiBi (max_alibi_bias), 0 = none; see ALiBiSlopes
	Span    int     // which span of a row is heeded: column Span−1 of Batch.Spans, 0 = none
	Q, Out  View
}

// RouteKind says how router logits become probabilities.
type RouteKind uint8

// The gating functions of engine-spec "MoE".
const (
	RouteSoftmax RouteKind = iota
	RouteSigmoid
	RouteRaw // softmax over the chosen logits
	RouteSqrtSoftplus
	RouteRawSigmoid // sigmoid of the chosen logits
)

// Route chooses TopK experts per row and lists them from the largest probability to
// the smallest, equals by ascending id. Bias is added for choosing and for the order
// of the list only. Groups > 1 keeps the GroupsUsed groups with the best sum of their
// best two. Norm divides by the sum (at least 6.103515625e-5); Scale multiplies
// afterwards (0 = 1). With Share > 1 the list names members of a smaller stack, each of
// which stands for Share neighbouring experts: it holds id / Share, and the weights are
// the probabilities at these numbers (GroveMoE).
type Route struct {
	Kind               RouteKind
	Bias               *Weight
	TopK               int
	Groups, GroupsUsed int
	Share              int
	Norm               bool
	Scale              float32
	In                 View // [experts] logits
	IDs                View // [TopK] I32
	Weights            View // [TopK]
}

// ExpertMatMul multiplies by the chosen experts' matrices:
// out[k] = W[IDs[k]]·in[k] + Bias[IDs[k]]. When In is one row wide (W.Cols) every
// expert reads the same input, otherwise In holds TopK inputs side by side.
type ExpertMatMul struct {
	W    *Weight // [experts, out, in]
	Bias *Weight // [experts, out], optional
	IDs  View
	In   View
	Out  View // [TopK·out]
}

// ExpertSum adds the experts' outputs in list order: out = Σ_k Weights[k]·in[k].
// PerExpert, optional, multiplies each by the expert's own scale.
type ExpertSum struct {
	IDs       View
	Weights   View
	PerExpert *Weight // [experts]
	In        View    // [TopK·width]
	Out       View
}

// ShortConv is a causal depthwise convolution over time with kernel width K: the
// state holds the last K−1 inputs. out = act(Σ_j W[c][j]·x[t−K+1+j] + Bias[c]).
type ShortConv struct {
	W     *Weight // [channels, K]
	Bias  *Weight // [channels], optional
	Act   Act
	State int // [K−1, channels] floats, the oldest input first
	In    View
	Out   View
}

// Mamba1 is the selective scan of Mamba: for each channel c and state n,
// h = exp(dt·A[c][n])·h + dt·B[n]·x, y = Σ_n C[n]·h + D[c]·x.
type Mamba1 struct {
	A, D  *Weight // A: [channels, N] (negative), D: [channels]
	N     int
	State int  // h: [channels, N]
	X, Dt View // [channels]; dt after softplus
	B, C  View // [N]
	Out   View
}

// Mamba2 is the scalar-decay form: per head h (P channels) and group g,
// M = exp(dt·A[h])·M + dt·x·Bᵀ, y = M·C + D[h]·x.
type Mamba2 struct {
	A, D             *Weight // [heads]
	Heads, Groups, N int
	State            int  // M: [heads·P, N]
	X                View // [heads·P]
	Dt               View // [heads] after softplus
	B, C             View // [groups·N]
	Out              View
}

// GatedDelta is one step of Gated DeltaNet per head: M = e^g·M,
// δ = β(v − Mᵀk), M += k·δᵀ, o = Mᵀq·Scale. V head h reads K head h mod KHeads.
type GatedDelta struct {
	KHeads, VHeads, Dim int
	Scale               float32
	State               int  // Mᵀ: [VHeads, value, key]
	Q, K                View // [KHeads·Dim]
	V                   View // [VHeads·Dim]
	Gate, Beta          View // [VHeads]
	Out                 View
}
