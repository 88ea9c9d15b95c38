//! The same cases twice: which were lost, which gained, and whether that can be chance.
//!
//! McNemar's test in its exact form, and its mid-p: M. W. Fagerland, S. Lydersen, P. Laake, "The McNemar test for binary
//! matched-pairs data", BMC Medical Research Methodology 13, 2013. Several tests at once: S. Holm, "A simple sequentially
//! rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979.

use super::binomial::{below, pmf};
use super::interval::{Difference, paired};

/// Pairs by how they came out before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flips {
    pub both: usize,
    /// Passed before, and no longer.
    pub lost: usize,
    /// Passes now, and did not.
    pub gained: usize,
    pub neither: usize,
}

impl Flips {
    pub fn add(&mut self, before: bool, after: bool) {
        match (before, after) {
            (true, true) => self.both += 1,
            (true, false) => self.lost += 1,
            (false, true) => self.gained += 1,
            (false, false) => self.neither += 1,
        }
    }

    pub fn plus(self, other: Flips) -> Flips {
        Flips {
            both: self.both + other.both,
            lost: self.lost + other.lost,
            gained: self.gained + other.gained,
            neither: self.neither + other.neither,
        }
    }

    pub fn pairs(self) -> usize {
        self.both + self.lost + self.gained + self.neither
    }

    /// The exact two-sided p value.
    pub fn p(self) -> f64 {
        sign_test(self.lost, self.gained)
    }
}

/// Two-sided exact sign test of paired results (McNemar's test in its exact form): the probability that of `lost +
/// gained` pairs that differ at least so many differ in one direction, if either direction were as likely.
pub fn sign_test(lost: usize, gained: usize) -> f64 {
    (2.0 * below(lost.min(gained) + 1, lost + gained, 0.5)).min(1.0)
}

/// The mid-p of [`sign_test`]: what was seen counts half. Less cautious, and still close to what it says.
pub fn mid_p(lost: usize, gained: usize) -> f64 {
    let (least, n) = (lost.min(gained), lost + gained);
    let seen = pmf(least, n, 0.5);
    if lost == gained { 1.0 - seen / 2.0 } else { 2.0 * below(least, n, 0.5) + seen }
}

/// Holm's adjusted p values, in the order given.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let (mut adjusted, mut highest) = (vec![1.0; p.len()], 0.0_f64);
    for (rank, index) in order.into_iter().enumerate() {
        highest = highest.max((p[index] * (p.len() - rank) as f64).min(1.0));
        adjusted[index] = highest;
    }
    adjusted
}

/// How a comparison came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Regressed,
    Improved,
    /// No difference as large as the margin.
    Same,
    /// Too few pairs to tell a difference from none.
    Inconclusive,
}

/// What the flips say: `p` is their (adjusted) p value, `alpha` the chance of a false alarm that is accepted, `margin` a
/// drop of the rate that would matter.
pub fn outcome(flips: Flips, p: f64, alpha: f64, margin: f64) -> (Outcome, Difference) {
    let difference = paired(flips);
    let outcome = if p < alpha && flips.lost > flips.gained {
        Outcome::Regressed
    } else if p < alpha && flips.gained > flips.lost {
        Outcome::Improved
    } else if flips.pairs() > 0 && difference.low > -margin && difference.high < margin {
        Outcome::Same
    } else {
        Outcome::Inconclusive
    };
    (outcome, difference)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sign_tests_by_hand() {
        // 2 × (1 + 6) / 2^6, 2 / 2^5, and pairs that say nothing.
        for (lost, gained, want) in [(5, 1, 0.21875), (0, 5, 0.0625), (3, 3, 1.0), (0, 0, 1.0)] {
            assert!((sign_test(lost, gained) - want).abs() < 1e-12, "{lost} {gained}: {}", sign_test(lost, gained));
        }
        assert!(sign_test(3000, 2000) < 1e-12);
        // The seen pairs count half: 2 × 1/64 + 6/64, and 1 − C(6,3)/2^7.
        assert!((mid_p(5, 1) - 0.125).abs() < 1e-12 && (mid_p(3, 3) - 0.84375).abs() < 1e-12);
        assert_eq!(mid_p(0, 0), 0.5);
    }

    #[test]
    fn so_many_losses_prove_a_regression() {
        // The least losses with p < 0.05, by gains.
        for (gained, lost) in [(0, 6), (1, 8), (2, 10), (3, 12), (4, 13), (5, 15)] {
            assert!(sign_test(lost, gained) < 0.05 && sign_test(lost - 1, gained) >= 0.05, "{lost} {gained}");
        }
    }

    #[test]
    fn holm_keeps_order_and_never_falls() {
        assert_eq!(holm(&[]), Vec::<f64>::new());
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (have, want) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((have - want).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }

    #[test]
    fn outcomes() {
        let of = |both, lost, gained| {
            let flips = Flips { both, lost, gained, neither: 0 };
            outcome(flips, flips.p(), 0.05, 0.1).0
        };
        assert_eq!(of(80, 8, 1), Outcome::Regressed);
        assert_eq!(of(80, 1, 8), Outcome::Improved);
        assert_eq!(of(100, 0, 0), Outcome::Same);
        assert_eq!(of(5, 1, 0), Outcome::Inconclusive);
        assert_eq!(of(0, 0, 0), Outcome::Inconclusive);
    }
}
