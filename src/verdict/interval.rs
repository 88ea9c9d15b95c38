//! Intervals of rates and of differences of rates, each from counts; all two-sided, 95 %.
//!
//! Wilson: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22, 1927. Exact: C. J.
//! Clopper and E. S. Pearson, Biometrika 26, 1934. Differences: R. G. Newcombe, "Interval estimation for the difference
//! between independent proportions", Statistics in Medicine 17, 1998 (method 10), and "Improved confidence intervals for
//! the difference between binomial proportions based on paired data", ibid. (method 10). Sums over strata: G. Y. Zou and
//! A. Donner, "Construction of confidence limits about effect measures", Statistics in Medicine 27, 2008.

use super::binomial::below;
use super::paired::Flips;

/// Two-sided 95 %.
const Z: f64 = 1.959_963_984_540_054;
const TAIL: f64 = 0.025;

/// Bounds of a rate, each from 0 to 1. Nothing is known of none: 0 to 1.
pub fn wilson(passed: usize, n: usize) -> (f64, f64) {
    if n == 0 {
        return (0.0, 1.0);
    }
    let (n, p) = (n as f64, passed as f64 / n as f64);
    let denominator = 1.0 + Z * Z / n;
    let centre = (p + Z * Z / (2.0 * n)) / denominator;
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt() / denominator;
    let low = if passed == 0 { 0.0 } else { (centre - half).max(0.0) };
    let high = if p >= 1.0 { 1.0 } else { (centre + half).min(1.0) };
    (low, high)
}

/// Exact bounds of a rate: never too narrow, often wider than need be.
pub fn clopper_pearson(passed: usize, n: usize) -> (f64, f64) {
    // The rate at which a tail is as probable as half of what is left out.
    let solve = |tail: &dyn Fn(f64) -> f64| {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..64 {
            let middle = (low + high) / 2.0;
            if tail(middle) < TAIL { low = middle } else { high = middle }
        }
        (low + high) / 2.0
    };
    let low = if passed == 0 { 0.0 } else { solve(&|p| 1.0 - below(passed, n, p)) };
    let high = if passed >= n { 1.0 } else { 1.0 - solve(&|q| below(passed + 1, n, 1.0 - q)) };
    (low, high)
}

/// A difference of two rates, and its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

/// Nothing is known: from −1 to 1.
const UNKNOWN: Difference = Difference { estimate: 0.0, low: -1.0, high: 1.0 };

/// The second rate less the first, of two independent groups: passed, of.
pub fn independent(first: (usize, usize), second: (usize, usize)) -> Difference {
    if first.1 == 0 || second.1 == 0 {
        return UNKNOWN;
    }
    let rate = |(passed, n): (usize, usize)| passed as f64 / n as f64;
    let (p, q) = (rate(first), rate(second));
    let ((low_p, high_p), (low_q, high_q)) = (wilson(first.0, first.1), wilson(second.0, second.1));
    let estimate = q - p;
    Difference {
        estimate,
        low: estimate - ((q - low_q).powi(2) + (high_p - p).powi(2)).sqrt(),
        high: estimate + ((high_q - q).powi(2) + (p - low_p).powi(2)).sqrt(),
    }
}

/// The share of pairs gained less the share lost.
pub fn paired(flips: Flips) -> Difference {
    let n = flips.pairs();
    if n == 0 {
        return UNKNOWN;
    }
    let (both, lost, gained, neither) =
        (flips.both as f64, flips.lost as f64, flips.gained as f64, flips.neither as f64);
    let (head, base) = (flips.both + flips.gained, flips.both + flips.lost);
    let (p, q) = (head as f64 / n as f64, base as f64 / n as f64);
    let ((low_p, high_p), (low_q, high_q)) = (wilson(head, n), wilson(base, n));
    let product = (both + gained) * (lost + neither) * (both + lost) * (gained + neither);
    let along = both * neither - gained * lost;
    let along = if along > 0.0 { (along - n as f64 / 2.0).max(0.0) } else { along };
    let phi = if product > 0.0 { along / product.sqrt() } else { 0.0 };
    let side = |a: f64, b: f64| (a * a - 2.0 * phi * a * b + b * b).max(0.0).sqrt();
    let estimate = p - q;
    Difference {
        estimate,
        low: (estimate - side(p - low_p, high_q - q)).max(-1.0),
        high: (estimate + side(high_p - p, q - low_q)).min(1.0),
    }
}

/// The difference over several strata, each weighted by its pairs.
pub fn stratified(strata: &[Flips]) -> Difference {
    let total: usize = strata.iter().map(|flips| flips.pairs()).sum();
    if total == 0 {
        return UNKNOWN;
    }
    let (mut estimate, mut down, mut up) = (0.0, 0.0, 0.0);
    for flips in strata.iter().filter(|flips| flips.pairs() > 0) {
        let weight = flips.pairs() as f64 / total as f64;
        let each = paired(*flips);
        estimate += weight * each.estimate;
        down += (weight * (each.estimate - each.low)).powi(2);
        up += (weight * (each.high - each.estimate)).powi(2);
    }
    Difference { estimate, low: (estimate - down.sqrt()).max(-1.0), high: (estimate + up.sqrt()).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::binomial::pmf;

    #[test]
    fn published_values() {
        // Of the seed's floors, as the peers' page computes them in per cent.
        let table = [(47, 86, 44.2, 64.7), (17, 36, 32.0, 63.0), (18, 24, 55.1, 88.0), (5, 8, 30.6, 86.3)];
        for (passed, n, low, high) in table {
            let (have_low, have_high) = wilson(passed, n);
            assert!((have_low * 100.0 - low).abs() < 0.05, "{passed}/{n}: {have_low}");
            assert!((have_high * 100.0 - high).abs() < 0.05, "{passed}/{n}: {have_high}");
        }
        // Newcombe 1998, table II: 56 of 70 against 48 of 80, method 10.
        let difference = independent((48, 80), (56, 70));
        assert!((difference.low - 0.0524).abs() < 5e-5 && (difference.high - 0.3339).abs() < 5e-5, "{difference:?}");
    }

    #[test]
    fn degenerate_counts_have_sane_answers() {
        for of in [wilson, clopper_pearson] {
            assert_eq!((of(0, 10).0, of(10, 10).1, of(0, 0)), (0.0, 1.0, (0.0, 1.0)));
        }
        assert!((wilson(0, 10).1 - 0.2775).abs() < 1e-4);
        // 1 − 0.025^(1/10).
        assert!((clopper_pearson(0, 10).1 - 0.308_497_1).abs() < 1e-6);
        assert_eq!(independent((0, 0), (1, 2)), UNKNOWN);
        assert_eq!((paired(Flips::default()), stratified(&[])), (UNKNOWN, UNKNOWN));
        let same = paired(Flips { both: 20, ..Flips::default() });
        assert!(same.estimate == 0.0 && same.low < 0.0 && same.high > 0.0, "{same:?}");
    }

    #[test]
    fn exact_bounds_leave_out_as_much_as_they_say() {
        for n in 1..12 {
            for passed in 0..=n {
                let (low, high) = clopper_pearson(passed, n);
                let at_least = |p: f64| (passed..=n).map(|k| pmf(k, n, p)).sum::<f64>();
                let at_most = |p: f64| (0..=passed).map(|k| pmf(k, n, p)).sum::<f64>();
                assert!(passed == 0 || (at_least(low) - TAIL).abs() < 1e-9);
                assert!(passed == n || (at_most(high) - TAIL).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn paired_intervals_hold_what_they_promise() {
        // All outcomes of 12 pairs, weighted by their probability: the interval covers the truth about as often as it says.
        let (n, truth) = (12_usize, [0.55, 0.2, 0.1, 0.15]);
        let mut covered = 0.0;
        for both in 0..=n {
            for lost in 0..=n - both {
                for gained in 0..=n - both - lost {
                    let flips = Flips { both, lost, gained, neither: n - both - lost - gained };
                    let ways = pmf(both, n, truth[0])
                        * pmf(lost, n - both, truth[1] / (1.0 - truth[0]))
                        * pmf(gained, n - both - lost, truth[2] / (truth[2] + truth[3]));
                    let difference = paired(flips);
                    covered += if (difference.low..=difference.high).contains(&-0.1) { ways } else { 0.0 };
                }
            }
        }
        assert!((0.94..0.995).contains(&covered), "{covered}");
    }

    #[test]
    fn one_stratum_is_itself_and_several_are_narrower() {
        let flips = Flips { both: 30, lost: 5, gained: 2, neither: 13 };
        let (one, two) = (paired(flips), stratified(&[flips, flips]));
        assert!((stratified(&[flips]).low - one.low).abs() < 1e-12);
        assert!((two.estimate - one.estimate).abs() < 1e-12 && two.high - two.low < one.high - one.low);
        assert_eq!(stratified(&[flips, Flips::default()]), stratified(&[flips]));
    }
}
