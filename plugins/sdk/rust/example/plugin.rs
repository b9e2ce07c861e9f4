//! top-a: keeps the tokens whose probability is at least a times the square of the best
//! one's: many where the model is unsure, few where it is sure.
#![no_std]
use ganglion::*;

struct TopA {
    log_a: f32,
}

impl Plugin for TopA {
    fn open() -> Open<Self> {
        let a = number("/config/a", 0.2);
        if a <= 0.0 {
            return Open::NotInterested;
        }
        Open::Ready(TopA { log_a: ln(a) as f32 })
    }

    fn logits(&mut self, f: &mut Frame) -> i32 {
        if f.cand_n == 0 {
            return 0;
        }
        let best = f.logits()[0] - f.logsumexp; // log p
        let least = f.logsumexp + self.log_a + 2.0 * best;
        let keep = f.logits().iter().take_while(|l| **l >= least).count().max(1) as u32;
        if keep == f.cand_n {
            return 0;
        }
        f.cand_n = keep;
        CANDS
    }
}

plugin!(TopA: logits);
