// The AssemblyScript side of the Ganglion plugin ABI 1.0 (plugins/abi/ABI.md).
//
// A plugin exports its hooks under their names: gg_open(), gg_logits(f) and so on, takes
// gg_abi_1 and gg_alloc from here, and reads and writes the frame through Frame.

// Action bits.
export const EDITS = 1, MASK = 2, CANDS = 4, FULL = 8, TEMP = 16, TOKEN = 32, FORCE = 64,
  BACKTRACK = 128, STOP = 256, TEXT = 512, IDLE = 1024;

// What an edit does to a logit.
export const ADD: u32 = 0, SET: u32 = 1, MUL_SIGNED: u32 = 2, BAN: u32 = 3, MIN: u32 = 4, MAX: u32 = 5;

// What one call knows and answers; ABI.md tells what each field means. The offsets are
// those of the frame's header.
@unmanaged
export class Frame {
  magic: u32; size: u32; abi: u32; hook: u32;
  flags: u32; step: u32; position: u32; sequence: u32;
  vocab: u32; lastToken: u32; nPrompt: u32; nGenerated: u32;
  historyOff: u32; historyLen: u32; historyPos: u32;
  candCap: u32; candN: u32; candIdsOff: u32; candLogitsOff: u32;
  gatherN: u32; gatherIdsOff: u32; gatherLogitsOff: u32;
  fullOff: u32; maskOff: u32;
  editOff: u32; editCap: u32; editN: u32;
  outOff: u32; outCap: u32; outN: u32;
  inOff: u32; inN: u32;
  max: f32; mean: f32; std: f32; logsumexp: f32; entropy: f32; candMass: f32;
  temperature: f32; nFinite: u32;
  random0: u32; random1: u32; random2: u32; random3: u32;
  random4: u32; random5: u32; random6: u32; random7: u32;
  token: u32; backtrack: u32; stopReason: u32; wakeStep: u32;
  fuel: u64;

  @inline private at(off: u32): usize { return changetype<usize>(this) + off; }
  // Candidates, best first.
  @inline id(i: u32): u32 { return load<u32>(this.at(this.candIdsOff + 4 * i)); }
  @inline setId(i: u32, id: u32): void { store<u32>(this.at(this.candIdsOff + 4 * i), id); }
  @inline logit(i: u32): f32 { return load<f32>(this.at(this.candLogitsOff + 4 * i)); }
  @inline setLogit(i: u32, v: f32): void { store<f32>(this.at(this.candLogitsOff + 4 * i), v); }
  @inline gathered(i: u32): f32 { return load<f32>(this.at(this.gatherLogitsOff + 4 * i)); }
  @inline history(i: u32): u32 { return load<u32>(this.at(this.historyOff + 4 * i)); }
  @inline tokenIn(i: u32): u32 { return load<u32>(this.at(this.inOff + 4 * i)); }
  @inline byteIn(i: u32): u8 { return load<u8>(this.at(this.inOff + i)); }
  @inline maskWord(w: u32): u32 { return load<u32>(this.at(this.maskOff + 4 * w)); }
  @inline setMaskWord(w: u32, bits: u32): void { store<u32>(this.at(this.maskOff + 4 * w), bits); }
  // Appends an edit; false where there is no room for one more.
  edit(id: u32, op: u32, value: f32): bool {
    if (this.editN >= this.editCap) return false;
    const p = this.at(this.editOff + 8 * this.editN);
    store<u32>(p, id | (op << 28));
    store<f32>(p, value, 4);
    this.editN++;
    return true;
  }
  // Appends a token that must come next.
  force(id: u32): bool {
    if (this.outN >= this.outCap / 4) return false;
    store<u32>(this.at(this.outOff + 4 * this.outN++), id);
    return true;
  }
  // A number in [0, 1) of the first random word.
  @inline uniform(): f32 { return <f32>(this.random0 >> 8) * <f32>(1.0 / 16777216.0); }
}

export function gg_abi_1(): i32 { return 0; }

// Memory that is never given back: the host restores an instance's memory as a whole.
export function gg_alloc(size: usize, align: usize): usize {
  const p = heap.alloc(size + align);
  return (p + align - 1) & ~(align - 1);
}

// @ts-ignore: decorator
@external("ganglion", "open_num")
declare function openNum(pointer: usize, n: usize): f64;
// @ts-ignore: decorator
@external("ganglion", "open_str")
declare function openStr(pointer: usize, n: usize, out: usize, cap: usize): i32;
// @ts-ignore: decorator
@external("ganglion", "open_len")
declare function openLen(pointer: usize, n: usize): i32;
// @ts-ignore: decorator
@external("ganglion", "set_error")
declare function setError(text: usize, n: usize): i32;
// @ts-ignore: decorator
@external("ganglion", "log")
declare function hostLog(level: i32, text: usize, n: usize): i32;
// @ts-ignore: decorator
@external("ganglion", "tok_bytes")
export declare function tokBytes(id: u32, out: usize, cap: usize): i32;
// @ts-ignore: decorator
@external("ganglion", "tok_is_eog")
export declare function tokIsEog(id: u32): i32;
// @ts-ignore: decorator
@external("ganglion", "rand_u32")
export declare function randU32(): u32;
// rest lets others run: for loops that last milliseconds.
// @ts-ignore: decorator
@external("ganglion", "rest")
export declare function rest(): i32;

// A number of the text of gg_open, by JSON pointer; other where there is none.
export function number(pointer: string, other: f64): f64 {
  const p = String.UTF8.encode(pointer);
  const v = openNum(changetype<usize>(p), p.byteLength);
  return isNaN(v) ? other : v;
}
// A string of the text of gg_open; null where there is none.
export function text(pointer: string): string | null {
  const p = String.UTF8.encode(pointer);
  let out = new ArrayBuffer(256);
  let n = openStr(changetype<usize>(p), p.byteLength, changetype<usize>(out), out.byteLength);
  if (n <= -100) {
    out = new ArrayBuffer(-n - 100);
    n = openStr(changetype<usize>(p), p.byteLength, changetype<usize>(out), out.byteLength);
  }
  return n < 0 ? null : String.UTF8.decodeUnsafe(changetype<usize>(out), n);
}
export function length(pointer: string): i32 {
  const p = String.UTF8.encode(pointer);
  return openLen(changetype<usize>(p), p.byteLength);
}
// Gives the host a message; the value to return from a hook.
export function fail(message: string): i32 {
  const p = String.UTF8.encode(message);
  setError(changetype<usize>(p), p.byteLength);
  return -1;
}
export function log(level: i32, message: string): void {
  const p = String.UTF8.encode(message);
  hostLog(level, changetype<usize>(p), p.byteLength);
}
