// A guest for the tests of plugins/host: config.mode says what gg_plan does. Built with
//   clang --target=wasm32 -O2 -nostdlib -mbulk-memory -Wl,--no-entry -Wl,-z,stack-size=16384 -o guest.wasm guest.c
typedef unsigned char u8;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

#define EXPORT(name) __attribute__((export_name(#name)))
#define IMPORT(name) __attribute__((import_module("ganglion"), import_name(#name)))

IMPORT(log) i32 host_log(u32 level, const void *p, u32 n);
IMPORT(set_error) i32 set_error(const void *p, u32 n);
IMPORT(open_num) double open_num(const void *p, u32 n);
IMPORT(open_str) i32 open_str(const void *p, u32 n, void *out, u32 cap);
IMPORT(open_len) i32 open_len(const void *p, u32 n);
IMPORT(tok_bytes) i32 tok_bytes(u32 id, void *out, u32 cap);
IMPORT(tok_encode) i32 tok_encode(const void *p, u32 n, u32 flags, void *out, u32 cap);
IMPORT(tok_decode) i32 tok_decode(const void *ids, u32 n, void *out, u32 cap);
IMPORT(tok_special) i32 tok_special(u32 kind);
IMPORT(tok_is_eog) i32 tok_is_eog(u32 id);
IMPORT(text_tail) i32 text_tail(u32 n, void *out, u32 cap);
IMPORT(vocab_mask) i32 vocab_mask(u32 kind, const void *p, u32 n, void *out);
IMPORT(vocab_bytes) i32 vocab_bytes(u32 kind);
IMPORT(vocab_load) i32 vocab_load(u32 kind, void *p);
IMPORT(rand_u32) u32 rand_u32(void);
IMPORT(rand_f32) float rand_f32(void);
IMPORT(kv_get) i32 kv_get(const void *k, u32 kl, void *out, u32 cap);
IMPORT(kv_set) i32 kv_set(const void *k, u32 kl, const void *v, u32 n);
IMPORT(kv_del) i32 kv_del(const void *k, u32 kl);
IMPORT(clock_ms) i64 clock_ms(void);
IMPORT(asset_read) i32 asset_read(const void *k, u32 kl, u32 off, void *out, u32 cap);
IMPORT(meta_set) i32 meta_set(const void *k, u32 kl, const void *v, u32 n);
IMPORT(aux_open) i32 aux_open(const void *ids, u32 n, u32 flags);
IMPORT(aux_logits) i32 aux_logits(i32 seq, const void *ids, u32 n, void *out);
IMPORT(aux_stats) i32 aux_stats(i32 seq, void *out);
IMPORT(next) i32 next(u32 actions);

extern u8 __heap_base;
static u32 brk; // 0: nothing was given yet
static u32 mode;
static u32 calls; // in memory
static volatile u32 sink;
static u8 block[8192];

#define STR(s) s, sizeof(s) - 1
#define FIELD(f, off) (*(volatile u32 *)((u8 *)(f) + (off)))

EXPORT(gg_abi_1) i32 gg_abi_1(void) { return 0; }

static u32 grow_to(u32 end) {
  u32 have = __builtin_wasm_memory_size(0) * 65536;
  if (end <= have) return 1;
  return __builtin_wasm_memory_grow(0, (end - have + 65535) / 65536) != (u32)-1;
}

EXPORT(gg_alloc) u32 gg_alloc(u32 size, u32 align) {
  if (!brk) brk = (u32)&__heap_base;
  u32 at = (brk + align - 1) & ~(align - 1);
  if (!grow_to(at + size)) return 0;
  brk = at + size;
  return at;
}

EXPORT(gg_open) i32 gg_open(const u8 *text, u32 n) {
  double m = open_num(STR("/config/mode"));
  mode = m == m ? (u32)m : 0;
  if (mode == 90) return 1;
  if (mode == 91) { set_error(STR("not today")); return -1; }
  if (mode == 92) for (;;) sink++;
  if (mode == 93) { // masks and the vocabulary at open
    i32 a = vocab_mask(0, STR("^a+$"), block);
    i32 b = vocab_mask(1, STR("ab"), block + 64);
    i32 c = vocab_mask(3, STR("Han"), block + 128);
    i32 d = vocab_mask(5, STR(""), block + 192);
    i32 e = vocab_bytes(1);
    i32 f = vocab_load(1, block + 256);
    if (a != 2 || b != 3 || c != 1 || d != 1 || e != f) { set_error(STR("masks")); return -2; }
  }
  return 0;
}

__attribute__((noinline)) static u32 fib(u32 n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) static u32 forever(u32 n) { return forever(n + 1) ^ (forever(n + 2) * 3); }
typedef u32 (*function)(u32);
static function table[2] = {fib, forever};
static volatile u32 zero;

static i32 bad_pointers(u32 *frame) {
  const void *far = (void *)0xFFFFFF00u;
  const void *ends[3] = {(void *)0xFFFFFFFFu, far, (void *)(__builtin_wasm_memory_size(0) * 65536 - 1)};
  u32 wrong = 0;
  for (u32 k = 0; k < 3; k++) {
    void *p = (void *)ends[k];
    for (u32 n = 2; n; n = n == 2 ? 0xFFFFFFFFu : n == 0xFFFFFFFFu ? 0x80000000u : 0) {
      wrong += host_log(1, p, n) >= 0;
      wrong += set_error(p, n) >= 0;
      wrong += open_num(p, n) == 0;
      wrong += open_str(p, n, p, n) >= 0;
      wrong += open_str(STR("/plugin/name"), p, n) >= 0;
      wrong += open_len(p, n) >= 0;
      wrong += tok_bytes(0xFFFFFFFF, block, 8) >= 0;
      wrong += tok_bytes(1, p, n) >= 0;
      wrong += tok_encode(p, n, 0, block, 8) >= 0;
      wrong += tok_encode(STR("aab"), 0, p, n) >= 0;
      wrong += tok_encode(STR("aab"), 0xFFFFFFFF, block, 8) >= 0;
      wrong += tok_decode(p, n, block, 8) >= 0;
      wrong += tok_special(n + 8) >= 0;
      wrong += tok_is_eog(0x80000000u) >= 0;
      wrong += vocab_mask(0, p, n, block) >= 0;
      wrong += vocab_bytes(77) >= 0;
      wrong += vocab_load(0, p) >= 0;
      wrong += kv_get(p, n, block, 8) >= 0;
      wrong += kv_set(STR("k"), p, n) >= 0;
      wrong += kv_set(p, n, STR("v")) >= 0;
      wrong += kv_del(p, n) >= 0;
      wrong += asset_read(p, n, 0, block, 8) >= 0;
      wrong += asset_read(STR("a"), 0, p, 5) >= 0;
      wrong += meta_set(p, n, STR("1")) >= 0;
      wrong += meta_set(STR("k"), p, n) >= 0;
      wrong += meta_set(STR("k"), STR("{")) >= 0;
      wrong += aux_open(p, n, 0) >= 0;
      wrong += aux_logits(n, p, n, p) >= 0;
      wrong += aux_stats(n, p) >= 0;
      wrong += next(n) >= 0;
      if (wrong) return -(i32)(1000 + n % 1000);
    }
  }
  return 0;
}

EXPORT(gg_plan) i32 gg_plan(u32 *f) {
  calls++;
  switch (mode) {
  case 0: return 0;
  case 1: for (;;) sink++;
  case 2: sink = fib(60); return 0;
  case 3: for (;;) __builtin_memset((void *)(brk - 30000), (int)sink, 30000);
  case 4: sink = forever(0); return 0;
  case 5: __builtin_trap();
  case 6: sink = 7 / zero; return 0;
  case 7: sink = *(volatile u32 *)0xFFFFFFF0u; return 0;
  case 8: sink = table[2 + (zero & 1)](1); return 0;
  case 9: sink = __builtin_wasm_trunc_s_i32_f32(1e30f * (float)(1 - zero)); return 0;
  case 10: while (__builtin_wasm_memory_grow(0, 1) != (u32)-1) {} __builtin_trap();
  case 11: while (__builtin_wasm_memory_grow(0, 1) != (u32)-1) {} return 0;
  case 12: return 32;
  case 13: set_error(STR("sorry")); return -7;
  case 14: return -8;
  case 15: FIELD(f, 0x68) = 1000000; return 1;
  case 16: for (u32 k = 0; k < 200; k++) ((u32 *)((u8 *)f + FIELD(f, 0x6C)))[k] = 1; FIELD(f, 0x74) = 300; return 64;
  case 17: FIELD(f, 0x74) = 1; ((u32 *)((u8 *)f + FIELD(f, 0x6C)))[0] = 0xFFFFFFF0u; return 64;
  case 18: for (u32 k = 0; k < 64; k++) FIELD(f, 4 * k) = 0xFFFFFFFFu; return 1;
  case 19: // canaries everywhere the guest can write, except its stack and its frame
    for (u32 k = 0; k < sizeof block; k++) block[k] = 0xC5;
    for (u32 *p = (u32 *)((brk + 3) & ~3u); (u32)(p + 1) <= __builtin_wasm_memory_size(0) * 65536; p++) *p = 0xC5C5C5C5u;
    for (u32 k = FIELD(f, 0x60); k < FIELD(f, 4); k++) ((u8 *)f)[k] = 0xC5;
    return 0;
  case 20: { // are there canaries?
    u32 found = 0;
    for (u32 *p = (u32 *)1024; (u32)(p + 1) <= __builtin_wasm_memory_size(0) * 65536; p++) found += *p == 0xC5C5C5C5u;
    return found ? -9 : 0;
  }
  case 21: return bad_pointers(f);
  case 22: { i32 r = 0; for (u32 k = 0; k < 1000 && r == 0; k++) r = host_log(1, block, 4096); return r == -5 && host_log(1, block, 4097) == -5 ? 0 : -1; }
  case 23: { // random words to the edit buffer
    u32 *e = (u32 *)((u8 *)f + FIELD(f, 0x60));
    for (u32 k = 0; k < 6; k++) e[k] = rand_u32();
    e[6] = (u32)(rand_f32() * 16777216.0f);
    return 0;
  }
  case 24: { // kv
    if (kv_set(STR("k"), STR("value")) || kv_get(STR("k"), block, 100) != 5 || block[0] != 'v') return -1;
    if (kv_get(STR("k"), block, 2) != -105) return -2;
    if (kv_set(STR("gone"), STR("")) || kv_del(STR("gone")) || kv_get(STR("gone"), block, 8) != -4) return -3;
    if (kv_set(STR("big"), block, 65537) != -5) return -4;
    if (kv_get(STR("old"), block, 100) != 3) return -5;
    return 0;
  }
  case 25: { i32 r = 0; u32 n = 0; u8 key[2] = {0, 0}; while (r == 0 && n < 64) { key[0] = ++n; r = kv_set(key, 2, (void *)1024, 16000); if (r == 0) r = kv_set(key, 1, (void *)1024, 16000); } return r == -5 ? 0 : -(i32)n - 1; }
  case 26: { // until the quota
    i32 r = meta_set(STR("a"), STR("{\"b\":[1]}"));
    if (r) return r;
    for (u32 k = 0; k < 3000 && r == 0; k++) r = meta_set(STR("k"), STR("1"));
    return r == -5 ? 0 : -1;
  }
  case 27: { // tokens
    u32 ids[8];
    if (tok_encode(STR("aab"), 0, ids, 8) != 2) return -1;
    if (tok_encode(STR("aab"), 0, ids, 1) != -102) return -2;
    if (tok_decode(ids, 2, block, 100) != 3 || block[2] != 'b') return -3;
    if (tok_bytes(ids[0], block, 100) != 2 || tok_bytes(ids[0], block, 1) != -102) return -4;
    if (tok_special(1) != 0 || tok_special(3) != -4 || tok_is_eog(0) != 1 || tok_is_eog(1) != 0) return -5;
    if (asset_read(STR("a"), 0, block, 3) != 3 || asset_read(STR("a"), 3, block, 100) != 2 || asset_read(STR("a"), 5, block, 9) != 0) return -6;
    if (asset_read(STR("b"), 0, block, 3) != -4) return -7;
    if (text_tail(4, block, 100) != 4 || block[3] != 'd') return -8;
    if (clock_ms() != 1234) return -9;
    if (open_str(STR("/config/words/1"), block, 100) != 5 || block[0] != 'w') return -10;
    if (open_len(STR("/config/words")) != 2 || open_len(STR("/config/none")) != -4) return -11;
    if (open_num(STR("/request/max_tokens")) != 16) return -12;
    if (open_num(STR("/config/none")) == open_num(STR("/config/none"))) return -13;
    if (vocab_mask(1, STR("a"), block) != -3) return -14;
    return 0;
  }
  case 28: { // grows, then counts: a restored snapshot must shrink
    __builtin_wasm_memory_grow(0, 1);
    return 0;
  }
  case 29: FIELD(f, 0x98) = 0x7FC00000; return 16;
  case 30: FIELD(f, 0x68) = calls; return 1;
  case 31: return 2;
  case 32: FIELD(f, 0xCC) = 1000; return 1024;
  case 33: { u32 s = 0; for (u32 k = 0; k < 100; k++) s += rand_u32(); sink = s; return 0; }
  case 35: sink = tok_encode((void *)1024, 60000, 0, block, 0); for (;;) tok_encode((void *)1024, 60000, 0, block, 0);
  }
  return 0;
}

EXPORT(gg_logits) i32 gg_logits(u32 *f) {
  if (mode == 40) { // half of the candidates
    FIELD(f, 0x40) = FIELD(f, 0x40) / 2;
    return 4;
  }
  if (mode == 41) { FIELD(f, 0x40) = 1u << 31; return 4; }
  if (mode == 42) { // scale the full row
    float *row = (float *)((u8 *)f + FIELD(f, 0x58));
    u32 n = FIELD(f, 0x20);
    for (u32 k = 0; k < n; k++) row[k] *= 0.5f;
    return 8;
  }
  return 0;
}

EXPORT(gg_choose) i32 gg_choose(u32 *f) { FIELD(f, 0xC0) = mode == 50 ? 0xFFFFFFFFu : 3; return 32; }
EXPORT(gg_accept) i32 gg_accept(u32 *f) {
  if (mode == 60) { FIELD(f, 0xC4) = 100; return 128; }
  if (mode == 61) { FIELD(f, 0xC8) = 9; return 256; }
  if (mode == 62) { FIELD(f, 0xC8) = 3; return 256; }
  return 0;
}
EXPORT(gg_text) i32 gg_text(u32 *f) {
  if (mode == 70) { FIELD(f, 0x74) = 1u << 30; return 512; }
  if (mode == 71) { FIELD(f, 0x74) = 1; *((u8 *)f + FIELD(f, 0x6C)) = 0xFF; return 512; }
  return 0;
}
EXPORT(gg_prompt) i32 gg_prompt(u32 *f) { return 0; }
EXPORT(gg_end) i32 gg_end(u32 *f) { return 0; }
EXPORT(gg_rollback) i32 gg_rollback(u32 *f) { return 0; }

EXPORT(gg_run) i32 gg_run(u32 *f) {
  u32 hook = next(0), n = 0;
  for (;;) {
    if (mode == 80 && ++n == 3) return 0;
    if (mode == 81 && ++n == 2) __builtin_trap();
    if (mode == 82 && ++n == 2) for (;;) sink++;
    FIELD(f, 0x68) = FIELD(f, 0x14) % 4;
    hook = next(hook == 3 ? 1 : 0);
  }
}
