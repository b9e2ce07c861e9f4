// top-a: keeps the tokens whose probability is at least a times the square of the best
// one's: many where the model is unsure, few where it is sure.
import { CANDS, Frame, number } from "./ganglion";
export { gg_abi_1, gg_alloc } from "./ganglion";

let logA: f32 = 0;

export function gg_open(_json: usize, _n: usize): i32 {
  const a = number("/config/a", 0.2);
  if (a <= 0) return 1; // not interested
  logA = <f32>Math.log(a);
  return 0;
}

export function gg_logits(f: Frame): i32 {
  if (f.candN == 0) return 0;
  const best = f.logit(0) - f.logsumexp; // log p
  const least = f.logsumexp + logA + 2 * best;
  let keep: u32 = 1;
  while (keep < f.candN && f.logit(keep) >= least) keep++;
  if (keep == f.candN) return 0;
  f.candN = keep;
  return CANDS;
}
