//! Binomial and beta-binomial counts, exactly.

use libm::lgamma;

/// ln of n over k.
fn ln_choose(n: usize, k: usize) -> f64 {
    lgamma(n as f64 + 1.0) - lgamma(k as f64 + 1.0) - lgamma((n - k) as f64 + 1.0)
}

/// The probability of exactly `k` passes of `n` at rate `p`.
pub fn pmf(k: usize, n: usize, p: f64) -> f64 {
    if k > n {
        return 0.0;
    }
    // 0 · ln 0 is 0 here, and not a NaN.
    let part = |count: usize, rate: f64| if count == 0 { 0.0 } else { count as f64 * rate.ln() };
    (ln_choose(n, k) + part(k, p) + part(n - k, 1.0 - p)).exp()
}

/// The probability of fewer than `k` passes of `n` at rate `p`.
pub fn below(k: usize, n: usize, p: f64) -> f64 {
    let sum = |range: std::ops::Range<usize>| range.map(|each| pmf(each, n, p)).sum::<f64>();
    // From the shorter side, so that small tails keep their digits.
    let lower = (k as f64) <= n as f64 * p;
    let tail = if lower { sum(0..k.min(n + 1)) } else { 1.0 - sum(k..n + 1) };
    tail.clamp(0.0, 1.0)
}

/// A rate that is itself uncertain, spread as Beta(a, b).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub a: f64,
    pub b: f64,
}

impl Spread {
    pub fn mean(self) -> f64 {
        self.a / (self.a + self.b)
    }

    /// The probability of exactly `k` passes of `n` (beta-binomial).
    pub fn pmf(self, k: usize, n: usize) -> f64 {
        if k > n {
            return 0.0;
        }
        let ln_beta = |a: f64, b: f64| lgamma(a) + lgamma(b) - lgamma(a + b);
        (ln_choose(n, k) + ln_beta(self.a + k as f64, self.b + (n - k) as f64) - ln_beta(self.a, self.b)).exp()
    }

    /// The probabilities of fewer than 0, 1, … n + 1 passes of `n`.
    pub fn tails(self, n: usize) -> Vec<f64> {
        let sums = (0..=n).scan(0.0, |sum, k| {
            *sum += self.pmf(k, n);
            Some(f64::min(*sum, 1.0))
        });
        std::iter::once(0.0).chain(sums).collect()
    }

    /// The probability of fewer than `k` passes of `n`.
    pub fn below(self, k: usize, n: usize) -> f64 {
        self.tails(n)[k.min(n + 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All outcomes of so few attempts, one by one.
    fn enumerated(k: usize, n: usize, p: f64) -> f64 {
        let ways = (0..1_u32 << n).filter(|outcome| (outcome.count_ones() as usize) < k);
        ways.map(|outcome| {
            let passed = outcome.count_ones() as i32;
            p.powi(passed) * (1.0 - p).powi(n as i32 - passed)
        })
        .sum()
    }

    #[test]
    fn tails_are_those_of_all_outcomes() {
        for n in 0..9 {
            for k in 0..=n + 1 {
                for p in [0.0, 0.1, 0.5, 0.83, 1.0] {
                    let (have, want) = (below(k, n, p), enumerated(k, n, p));
                    assert!((have - want).abs() < 1e-12, "{k} {n} {p}: {have} {want}");
                }
            }
        }
    }

    #[test]
    fn a_spread_that_is_flat_makes_every_count_as_likely() {
        let flat = Spread { a: 1.0, b: 1.0 };
        for k in 0..=7 {
            assert!((flat.pmf(k, 7) - 0.125).abs() < 1e-12);
        }
        assert!((flat.below(2, 7) - 0.25).abs() < 1e-12);
        assert!(flat.below(0, 7) == 0.0 && (flat.below(9, 7) - 1.0).abs() < 1e-12 && flat.pmf(8, 7) == 0.0);
        let narrow = Spread { a: 6e8, b: 4e8 };
        assert!((narrow.below(50, 86) - below(50, 86, 0.6)).abs() < 1e-6);
    }
}
