//! The Rust side of the Ganglion plugin ABI 1.0 (plugins/abi/ABI.md): one file, no_std, no
//! dependency, Rust 1.63 or newer.
//!
//! ```ignore
//! #![no_std]
//! use ganglion::*;
//! struct Mine { p: f32 }
//! impl Plugin for Mine {
//!     fn open() -> Open<Self> { Open::Ready(Mine { p: number("/config/p", 0.5) as f32 }) }
//!     fn logits(&mut self, f: &mut Frame) -> i32 { EDITS }
//! }
//! plugin!(Mine: logits);
//! ```
#![no_std]
#![allow(clippy::missing_safety_doc)]

/// What one call knows and answers; ABI.md tells what each field means. All `*_off` fields
/// count from the frame's first byte, 0 where the view did not ask for the part.
#[repr(C, align(64))]
pub struct Frame {
    pub magic: u32,
    pub size: u32,
    pub abi: u32,
    pub hook: u32,
    pub flags: u32,
    pub step: u32,
    pub position: u32,
    pub sequence: u32,
    pub vocab: u32,
    pub last_token: u32,
    pub n_prompt: u32,
    pub n_generated: u32,
    pub history_off: u32,
    pub history_len: u32,
    pub history_pos: u32,
    pub cand_cap: u32,
    pub cand_n: u32,
    pub cand_ids_off: u32,
    pub cand_logits_off: u32,
    pub gather_n: u32,
    pub gather_ids_off: u32,
    pub gather_logits_off: u32,
    pub full_off: u32,
    pub mask_off: u32,
    pub edit_off: u32,
    pub edit_cap: u32,
    pub edit_n: u32,
    pub out_off: u32,
    pub out_cap: u32,
    pub out_n: u32,
    pub in_off: u32,
    pub in_n: u32,
    pub max: f32,
    pub mean: f32,
    pub std: f32,
    pub logsumexp: f32,
    pub entropy: f32,
    pub cand_mass: f32,
    pub temperature: f32,
    pub n_finite: u32,
    pub random: [u32; 8],
    pub token: u32,
    pub backtrack: u32,
    pub stop_reason: u32,
    pub wake_step: u32,
    pub fuel: u64,
    pub reserved: [u32; 10],
}

const _: [(); 256] = [(); core::mem::size_of::<Frame>()];

// Action bits.
pub const EDITS: i32 = 1;
pub const MASK: i32 = 2;
pub const CANDS: i32 = 4;
pub const FULL: i32 = 8;
pub const TEMP: i32 = 16;
pub const TOKEN: i32 = 32;
pub const FORCE: i32 = 64;
pub const BACKTRACK: i32 = 128;
pub const STOP: i32 = 256;
pub const TEXT: i32 = 512;
pub const IDLE: i32 = 1024;

// Frame flags.
pub const GREEDY: u32 = 1;
pub const DRAFT: u32 = 2;
pub const FIRST: u32 = 4;
pub const LAST: u32 = 8;
pub const REPLAY: u32 = 16;

/// What an edit does to a logit.
#[repr(u32)]
#[derive(Clone, Copy)]
pub enum Op {
    Add = 0,
    Set = 1,
    MulSigned = 2,
    Ban = 3,
    Min = 4,
    Max = 5,
}

// The host writes the offsets and keeps its own copy of them, so the slices lie inside the
// block that it allocated through gg_alloc; each borrows the frame.
impl Frame {
    fn at<T>(&self, off: u32) -> *mut T {
        (self as *const Frame as usize + off as usize) as *mut T
    }
    unsafe fn part<T>(&self, off: u32, n: u32) -> &[T] {
        core::slice::from_raw_parts(self.at(off), if off == 0 { 0 } else { n as usize })
    }
    unsafe fn part_mut<T>(&mut self, off: u32, n: u32) -> &mut [T] {
        core::slice::from_raw_parts_mut(self.at(off), if off == 0 { 0 } else { n as usize })
    }
    /// Tokens of the history, oldest first.
    pub fn history(&self) -> &[u32] {
        unsafe { self.part(self.history_off, self.history_len) }
    }
    /// Ids of the candidates, best first.
    pub fn ids(&self) -> &[u32] {
        unsafe { self.part(self.cand_ids_off, self.cand_n) }
    }
    pub fn ids_mut(&mut self) -> &mut [u32] {
        unsafe { self.part_mut(self.cand_ids_off, self.cand_n) }
    }
    /// Logits of the candidates.
    pub fn logits(&self) -> &[f32] {
        unsafe { self.part(self.cand_logits_off, self.cand_n) }
    }
    pub fn logits_mut(&mut self) -> &mut [f32] {
        unsafe { self.part_mut(self.cand_logits_off, self.cand_n) }
    }
    /// The whole row, with view.logits "full".
    pub fn full(&mut self) -> &mut [f32] {
        unsafe { self.part_mut(self.full_off, self.vocab) }
    }
    pub fn gathered(&self) -> &[f32] {
        unsafe { self.part(self.gather_logits_off, self.gather_n) }
    }
    /// The mask: bit set = allowed, low bit first.
    pub fn mask(&mut self) -> &mut [u32] {
        unsafe { self.part_mut(self.mask_off, (self.vocab + 31) / 32) }
    }
    /// Accepted tokens, in hook accept.
    pub fn tokens_in(&self) -> &[u32] {
        unsafe { self.part(self.in_off, self.in_n) }
    }
    /// Text that came in, in hooks prompt and text.
    pub fn text_in(&self) -> &[u8] {
        unsafe { self.part(self.in_off, self.in_n) }
    }
    /// Room for text that goes out; set out_n and return TEXT.
    pub fn text_out(&mut self) -> &mut [u8] {
        unsafe { self.part_mut(self.out_off, self.out_cap) }
    }
    /// Appends an edit; false where there is no room for one more.
    pub fn edit(&mut self, id: u32, op: Op, value: f32) -> bool {
        if self.edit_n >= self.edit_cap {
            return false;
        }
        unsafe {
            let p: *mut u32 = self.at(self.edit_off + 8 * self.edit_n);
            p.write(id | (op as u32) << 28);
            (p.add(1) as *mut f32).write(value);
        }
        self.edit_n += 1;
        true
    }
    /// Appends a token that must come next.
    pub fn force(&mut self, id: u32) -> bool {
        if self.out_n >= self.out_cap / 4 {
            return false;
        }
        unsafe { self.at::<u32>(self.out_off + 4 * self.out_n).write(id) };
        self.out_n += 1;
        true
    }
    /// A number in [0, 1) of random word i < 8.
    pub fn uniform(&self, i: usize) -> f32 {
        (self.random[i & 7] >> 8) as f32 * (1.0 / 16777216.0)
    }
}

/// The answer of `Plugin::open`.
pub enum Open<P> {
    Ready(P),
    NotInterested,
    Failed(&'static str),
}

/// A plugin. A hook that the manifest and `plugin!` do not name is never called.
pub trait Plugin: Sized {
    fn open() -> Open<Self>;
    fn prompt(&mut self, _: &mut Frame) -> i32 {
        0
    }
    fn plan(&mut self, _: &mut Frame) -> i32 {
        0
    }
    fn logits(&mut self, _: &mut Frame) -> i32 {
        0
    }
    fn choose(&mut self, _: &mut Frame) -> i32 {
        0
    }
    fn accept(&mut self, _: &mut Frame) -> i32 {
        0
    }
    fn text(&mut self, _: &mut Frame) -> i32 {
        0
    }
    fn end(&mut self, _: &mut Frame) -> i32 {
        0
    }
    fn rollback(&mut self, _: &mut Frame) -> i32 {
        0
    }
}

/// Exports a plugin with the hooks that it has: `plugin!(Mine: plan, accept);`
#[macro_export]
macro_rules! plugin {
    ($type:ty: $($hook:ident),+) => {
        static mut PLUGIN: Option<$type> = None;
        #[no_mangle]
        pub extern "C" fn gg_abi_1() -> i32 { 0 }
        #[no_mangle]
        pub extern "C" fn gg_alloc(size: usize, align: usize) -> usize { $crate::alloc(size, align) }
        #[no_mangle]
        pub extern "C" fn gg_open(_: *const u8, _: usize) -> i32 {
            match <$type as $crate::Plugin>::open() {
                // One thread, and the host calls one export at a time.
                $crate::Open::Ready(p) => { unsafe { PLUGIN = Some(p) }; 0 }
                $crate::Open::NotInterested => 1,
                $crate::Open::Failed(text) => { $crate::set_error(text); -1 }
            }
        }
        $($crate::plugin_hook!($hook);)+
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! plugin_hook {
    (prompt) => { $crate::plugin_hook!(@ gg_prompt prompt); };
    (plan) => { $crate::plugin_hook!(@ gg_plan plan); };
    (logits) => { $crate::plugin_hook!(@ gg_logits logits); };
    (choose) => { $crate::plugin_hook!(@ gg_choose choose); };
    (accept) => { $crate::plugin_hook!(@ gg_accept accept); };
    (text) => { $crate::plugin_hook!(@ gg_text text); };
    (end) => { $crate::plugin_hook!(@ gg_end end); };
    (rollback) => { $crate::plugin_hook!(@ gg_rollback rollback); };
    (@ $export:ident $hook:ident) => {
        #[no_mangle]
        pub unsafe extern "C" fn $export(f: *mut $crate::Frame) -> i32 {
            match PLUGIN.as_mut() {
                Some(p) => $crate::Plugin::$hook(p, &mut *f),
                None => -1,
            }
        }
    };
}

mod host {
    #[link(wasm_import_module = "ganglion")]
    extern "C" {
        pub fn log(level: i32, text: *const u8, n: usize) -> i32;
        pub fn set_error(text: *const u8, n: usize) -> i32;
        pub fn open_num(pointer: *const u8, n: usize) -> f64;
        pub fn open_str(pointer: *const u8, n: usize, out: *mut u8, cap: usize) -> i32;
        pub fn open_len(pointer: *const u8, n: usize) -> i32;
        pub fn tok_bytes(id: u32, out: *mut u8, cap: usize) -> i32;
        pub fn tok_encode(text: *const u8, n: usize, flags: u32, out: *mut u32, cap: usize) -> i32;
        pub fn tok_is_eog(id: u32) -> i32;
        pub fn text_tail(n: usize, out: *mut u8, cap: usize) -> i32;
        pub fn vocab_mask(kind: u32, arg: *const u8, n: usize, out: *mut u32) -> i32;
        pub fn rand_u32() -> u32;
        pub fn rest() -> i32;
        pub fn kv_get(key: *const u8, kn: usize, out: *mut u8, cap: usize) -> i32;
        pub fn kv_set(key: *const u8, kn: usize, value: *const u8, vn: usize) -> i32;
        pub fn clock_ms() -> i64;
        pub fn meta_set(key: *const u8, kn: usize, value: *const u8, vn: usize) -> i32;
    }
}

// Host functions. A result below 0 is an error of the ABI.

pub fn log(level: i32, text: &str) {
    unsafe { host::log(level, text.as_ptr(), text.len()) };
}
pub fn set_error(text: &str) {
    unsafe { host::set_error(text.as_ptr(), text.len()) };
}
/// A number of the text of gg_open, by JSON pointer; other where there is none.
pub fn number(pointer: &str, other: f64) -> f64 {
    let v = unsafe { host::open_num(pointer.as_ptr(), pointer.len()) };
    if v.is_nan() {
        other
    } else {
        v
    }
}
/// A string of the text of gg_open; returns its bytes.
pub fn string(pointer: &str, out: &mut [u8]) -> i32 {
    unsafe { host::open_str(pointer.as_ptr(), pointer.len(), out.as_mut_ptr(), out.len()) }
}
pub fn length(pointer: &str) -> i32 {
    unsafe { host::open_len(pointer.as_ptr(), pointer.len()) }
}
pub fn tok_bytes(id: u32, out: &mut [u8]) -> i32 {
    unsafe { host::tok_bytes(id, out.as_mut_ptr(), out.len()) }
}
pub fn tok_encode(text: &[u8], flags: u32, out: &mut [u32]) -> i32 {
    unsafe { host::tok_encode(text.as_ptr(), text.len(), flags, out.as_mut_ptr(), out.len()) }
}
pub fn tok_is_eog(id: u32) -> bool {
    unsafe { host::tok_is_eog(id) == 1 }
}
pub fn text_tail(out: &mut [u8]) -> i32 {
    unsafe { host::text_tail(out.len(), out.as_mut_ptr(), out.len()) }
}
/// Writes a mask of the vocabulary; out must have (vocab + 31) / 32 words.
pub fn vocab_mask(kind: u32, arg: &[u8], vocab: u32, out: &mut [u32]) -> i32 {
    if out.len() < ((vocab + 31) / 32) as usize {
        return -1;
    }
    unsafe { host::vocab_mask(kind, arg.as_ptr(), arg.len(), out.as_mut_ptr()) }
}
/// rest lets others run: for loops that last milliseconds.
pub fn rest() {
    unsafe { host::rest() };
}
pub fn rand_u32() -> u32 {
    unsafe { host::rand_u32() }
}
pub fn kv_get(key: &str, out: &mut [u8]) -> i32 {
    unsafe { host::kv_get(key.as_ptr(), key.len(), out.as_mut_ptr(), out.len()) }
}
pub fn kv_set(key: &str, value: &[u8]) -> i32 {
    unsafe { host::kv_set(key.as_ptr(), key.len(), value.as_ptr(), value.len()) }
}
pub fn clock_ms() -> i64 {
    unsafe { host::clock_ms() }
}
pub fn meta_set(key: &str, json: &str) -> i32 {
    unsafe { host::meta_set(key.as_ptr(), key.len(), json.as_ptr(), json.len()) }
}

extern "C" {
    static __heap_base: u8;
}
static mut HEAP: usize = 0;

/// Memory that is never given back: the host restores an instance's memory as a whole.
/// 0 when the limit is reached. align is a power of two.
pub fn alloc(size: usize, align: usize) -> usize {
    use core::arch::wasm32::{memory_grow, memory_size};
    unsafe {
        if HEAP == 0 {
            HEAP = &__heap_base as *const u8 as usize;
        }
        let align = if align == 0 { 1 } else { align };
        let at = match HEAP.checked_add(align - 1) {
            Some(v) => v & !(align - 1),
            None => return 0,
        };
        let end = match at.checked_add(size) {
            Some(v) => v,
            None => return 0,
        };
        let have = memory_size(0) << 16;
        if end > have && memory_grow(0, (end - have + 0xffff) >> 16) == usize::MAX {
            return 0;
        }
        HEAP = end;
        at
    }
}

/// eˣ, the same bits on every machine; relative error below 1e-13.
pub fn exp(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x < -708.0 {
        return 0.0;
    }
    if x > 709.0 {
        return f64::INFINITY;
    }
    let scaled = x * core::f64::consts::LOG2_E;
    let k = (if scaled < 0.0 { scaled - 0.5 } else { scaled + 0.5 }) as i64;
    let r = x - k as f64 * 0.693147180369123816490 - k as f64 * 1.90821492927058770002e-10;
    let mut s = 1.0;
    let mut i = 13;
    while i > 0 {
        s = 1.0 + s * r / i as f64;
        i -= 1;
    }
    s * f64::from_bits(((1023 + k) as u64) << 52)
}

/// The natural logarithm; relative error below 1e-13.
pub fn ln(x: f64) -> f64 {
    if !(x > 0.0) {
        return if x == 0.0 { f64::NEG_INFINITY } else { f64::NAN };
    }
    if x == f64::INFINITY || x < f64::MIN_POSITIVE {
        return if x > 1.0 { x } else { ln(x * 18014398509481984.0) - 54.0 * core::f64::consts::LN_2 };
    }
    let bits = x.to_bits();
    let mut e = (bits >> 52) as i64 - 1023;
    let mut m = f64::from_bits(bits & 0xF_FFFF_FFFF_FFFF | 1023 << 52);
    if m > core::f64::consts::SQRT_2 {
        m *= 0.5;
        e += 1;
    }
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut t = 0.0;
    let mut i = 19;
    while i >= 1 {
        t = t * z + 1.0 / i as f64;
        i -= 2;
    }
    2.0 * s * t + e as f64 * core::f64::consts::LN_2
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}
