//! Several attempts at one case: what k of them would come to, and whether it is flaky.
//!
//! pass@k without bias: M. Chen et al., "Evaluating Large Language Models Trained on Code", arXiv 2107.03374, section 2.1. pass^k: S.
//! Yao et al., "τ-bench", arXiv 2406.12045, section 3.

/// The probability that at least one of `k` attempts, drawn from `n` of which `passed` passed, passes; `None` where there
/// are not so many.
pub fn pass_at(k: usize, passed: usize, n: usize) -> Option<f64> {
    Some(1.0 - all_of(k, n.checked_sub(passed)?, n)?)
}

/// The probability that all of `k` attempts, drawn from `n` of which `passed` passed, pass; `None` where there are not so
/// many.
pub fn pass_all(k: usize, passed: usize, n: usize) -> Option<f64> {
    all_of(k, passed, n)
}

/// C(of, k) / C(n, k), factor by factor.
fn all_of(k: usize, of: usize, n: usize) -> Option<f64> {
    (k <= n && of <= n)
        .then(|| if k > of { 0.0 } else { (0..k).map(|taken| (of - taken) as f64 / (n - taken) as f64).product() })
}

/// Neither always nor never.
pub fn is_flaky(passed: usize, n: usize) -> bool {
    passed > 0 && passed < n
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every way to draw `k` of `n`, the first `passed` of which pass.
    fn drawn(k: usize, passed: usize, n: usize, holds: fn(usize, usize) -> bool) -> f64 {
        let draws: Vec<u32> = (0..1_u32 << n).filter(|draw| draw.count_ones() as usize == k).collect();
        let good = (1_u32 << passed) - 1;
        let count = draws.iter().filter(|draw| holds((**draw & good).count_ones() as usize, k)).count();
        count as f64 / draws.len() as f64
    }

    #[test]
    fn both_are_those_of_every_draw() {
        for n in 1..9 {
            for passed in 0..=n {
                for k in 1..=n {
                    let any = drawn(k, passed, n, |passes, _| passes > 0);
                    let all = drawn(k, passed, n, |passes, k| passes == k);
                    assert!((pass_at(k, passed, n).unwrap() - any).abs() < 1e-12, "{k} {passed} {n}");
                    assert!((pass_all(k, passed, n).unwrap() - all).abs() < 1e-12, "{k} {passed} {n}");
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_drawn_is_unknown() {
        assert_eq!((pass_at(2, 1, 1), pass_all(1, 0, 0), pass_at(1, 3, 2)), (None, None, None));
        assert_eq!((pass_at(0, 0, 0), pass_all(0, 0, 0)), (Some(0.0), Some(1.0)));
        assert_eq!((is_flaky(0, 3), is_flaky(1, 3), is_flaky(3, 3), is_flaky(0, 0)), (false, true, false, false));
    }
}
