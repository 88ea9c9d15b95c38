//! The Wilson score interval (E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
//! JASA 22, 1927), which behaves at 0 of n and n of n as well.

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

#[cfg(test)]
mod tests {
    use super::*;

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
