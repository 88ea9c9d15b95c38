//! What counts can tell: the Wilson score interval and the exact sign test.
//!
//! The interval (E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
//! JASA 22, 1927) behaves at 0 of n and n of n as well.

/// Two-sided 95 %.
const Z: f64 = 1.959_963_984_540_054;

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

/// Two-sided exact sign test of paired results (McNemar's test in its exact form): the probability that of `lost +
/// gained` pairs that differ at least so many differ in one direction, if either direction were as likely.
pub fn sign_test(lost: usize, gained: usize) -> f64 {
    let (n, least) = (lost + gained, lost.min(gained));
    // The binomial tail from its terms' logarithms, so that no n overflows.
    let ln_half = n as f64 * 0.5_f64.ln();
    let (mut ln_choose, mut tail) = (0.0, 0.0);
    for k in 0..=least {
        if k > 0 {
            ln_choose += ((n - k + 1) as f64).ln() - (k as f64).ln();
        }
        tail += (ln_choose + ln_half).exp();
    }
    (2.0 * tail).min(1.0)
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
    }

    #[test]
    fn published_values() {
        // Of the seed's floors, as the peers' page computes them in per cent.
        let table = [(47, 86, 44.2, 64.7), (17, 36, 32.0, 63.0), (18, 24, 55.1, 88.0), (5, 8, 30.6, 86.3)];
        for (passed, n, low, high) in table {
            let (have_low, have_high) = wilson(passed, n);
            assert!((have_low * 100.0 - low).abs() < 0.05, "{passed}/{n}: {have_low}");
            assert!((have_high * 100.0 - high).abs() < 0.05, "{passed}/{n}: {have_high}");
        }
        assert_eq!(wilson(0, 10).0, 0.0);
        assert_eq!(wilson(10, 10).1, 1.0);
        assert!((wilson(0, 10).1 - 0.2775).abs() < 1e-4);
        assert_eq!(wilson(0, 0), (0.0, 1.0));
    }
}
