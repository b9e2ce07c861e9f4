// What Rust's standard library asks WASI for, said line by line.
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[link(wasm_import_module = "ganglion")]
extern "C" {
    fn open_num(pointer: *const u8, n: usize) -> f64;
}

#[no_mangle]
pub extern "C" fn gg_abi_1() -> i32 {
    0
}

#[no_mangle]
pub extern "C" fn gg_alloc(size: usize, align: usize) -> usize {
    let block = vec![0u8; size + align].leak();
    (block.as_ptr() as usize + align - 1) & !(align - 1)
}

fn word() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[no_mangle]
pub extern "C" fn gg_open(_: *const u8, _: usize) -> i32 {
    println!("args {} environment {}", std::env::args().count(), std::env::vars().count());
    let mut b = [0u8; 1];
    // The library takes an input that does not exist for one that is at its end.
    let input = std::io::Read::read(&mut std::io::stdin(), &mut b).unwrap_or(0);
    eprintln!("file {} input {}", std::fs::read("/etc/passwd").is_err(), input == 0);
    println!("random {}", word() != word());
    let began = Instant::now();
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    println!("time {}", wall.as_secs() > 0 && wall.as_secs() < 2);
    std::thread::sleep(Duration::from_secs(3600));
    println!("slept {}", began.elapsed().as_secs());
    let until = Instant::now() + Duration::from_millis(1);
    while Instant::now() < until {}
    std::thread::yield_now();
    0
}

#[no_mangle]
pub extern "C" fn gg_plan(_: *mut u8) -> i32 {
    let mode = "/config/mode";
    match unsafe { open_num(mode.as_ptr(), mode.len()) } as i32 {
        1 => std::process::exit(3),
        2 => panic!("on purpose"),
        _ => print!("step"),
    }
    std::io::Write::flush(&mut std::io::stdout()).is_err() as i32
}
