/* ganglion
{
  "abi": "1.0",
  "name": "top-a",
  "version": "1.0.0",
  "title": "Top-a",
  "description": "Keeps the tokens whose probability is at least a times the square of the best one's.",
  "license": "Apache-2.0",
  "slot": "truncate",
  "hooks": ["logits"],
  "view": {"logits": "topn", "n": 256},
  "truncates": true,
  "argmax_invariant": true,
  "config_schema": {
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "a": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.2, "title": "Share of the best probability's square; 0 is off"}
    }
  }
}
*/
let logA;

function open(request) {
	const a = request.config.a;
	if (a <= 0) return 1; // not interested
	logA = Math.log(a);
}

function logits(f) {
	const n = f.candN, l = f.logits;
	if (n === 0) return 0;
	const best = l[0] - f.logsumexp; // log p
	const least = f.logsumexp + logA + 2 * best;
	let keep = 1;
	while (keep < n && l[keep] >= least) keep++;
	if (keep === n) return 0;
	f.candN = keep;
	return CANDS;
}
