//! Floors from history: how many passes a cell must reach so that an unchanged model fails a release with a stated
//! probability, and what drop such a floor sees.
//!
//! The rate of a cell is not known, but seen in runs. One run gives a binomial count, whose rate is then spread as
//! Beta(k + ½, n − k + ½) (Jeffreys' prior); the next count is beta-binomial. Several runs narrow the spread, unless they differ from
//! each other by more than chance allows: then the rate of a run is taken to vary by that much as well.

use super::binomial::{Spread, below};

/// The chance of a false alarm of a whole release, unless told otherwise.
pub const FALSE_ALARM: f64 = 0.05;
/// The probability with which a drop counts as seen.
pub const POWER: f64 = 0.8;
/// One-sided 95 %: overdispersion is believed beyond it.
const Z: f64 = 1.644_853_626_951_472_7;

/// What the runs of a cell tell of its next count; `None` where there is no evidence. Runs: passed, of.
pub fn spread(runs: &[(usize, usize)]) -> Option<Spread> {
    let (passed, of) = runs.iter().fold((0, 0), |(passed, of), run| (passed + run.0, of + run.1));
    if of == 0 {
        return None;
    }
    let (a, b) = (passed as f64 + 0.5, (of - passed) as f64 + 0.5);
    let (mean, size) = (a / (a + b), of as f64 / runs.len() as f64);
    let rho = dispersion(runs, mean, size);
    if rho == 0.0 {
        return Some(Spread { a, b });
    }
    // What is not known of the mean, and what runs vary beside it: correlations within a run chain as (1 − ρ₁)(1 − ρ₂).
    let known = (a + b) / (1.0 + (size - 1.0) * rho);
    let both = 1.0 - (1.0 - 1.0 / (known + 1.0)) * (1.0 - rho);
    let total = 1.0 / both - 1.0;
    Some(Spread { a: mean * total, b: (1.0 - mean) * total })
}

/// The correlation within a run, where runs differ by more than chance (χ² of homogeneity over its 95 % point, by Wilson and
/// Hilferty's approximation); else 0.
fn dispersion(runs: &[(usize, usize)], mean: f64, size: f64) -> f64 {
    let freedom = runs.len() as f64 - 1.0;
    if freedom < 1.0 || size <= 1.0 {
        return 0.0;
    }
    let square = |(passed, of): &(usize, usize)| {
        let expected = *of as f64 * mean;
        (*passed as f64 - expected).powi(2) / (expected * (1.0 - mean)).max(f64::MIN_POSITIVE)
    };
    let chi: f64 = runs.iter().map(square).sum();
    let part = 2.0 / (9.0 * freedom);
    let limit = freedom * (1.0 - part + Z * part.sqrt()).powi(3);
    if chi <= limit { 0.0 } else { ((chi / freedom - 1.0) / (size - 1.0)).clamp(0.0, 0.99) }
}

/// One cell's part of a suggestion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Suggested {
    pub floor: usize,
    /// The probability that an unchanged model fails this floor.
    pub false_alarm: f64,
}

/// Floors of the cells of one release, of so many attempts each, so that an unchanged model misses at least one of them with a
/// probability of at most `alarm`, and as close to it as whole counts allow. Cells are taken as independent, which they
/// are not quite: where they fail together, the release fails more rarely.
pub fn floors(cells: &[(Spread, usize)], alarm: f64) -> Vec<Suggested> {
    // Alike for all (Šidák), then the steps that whole counts left over, the smallest first.
    let share = 1.0 - (1.0 - alarm).powf(1.0 / cells.len().max(1) as f64);
    let tails: Vec<Vec<f64>> = cells.iter().map(|(spread, n)| spread.tails(*n)).collect();
    let tail = |index: usize, floor: usize| tails[index][floor];
    let highest = |index: usize| (0..=cells[index].1).rev().find(|floor| tail(index, *floor) <= share).unwrap_or(0);
    let mut chosen: Vec<Suggested> = (0..cells.len())
        .map(|index| {
            let floor = highest(index);
            Suggested { floor, false_alarm: tail(index, floor) }
        })
        .collect();
    loop {
        let kept: f64 = chosen.iter().map(|each| 1.0 - each.false_alarm).product();
        let raised = (0..cells.len()).filter(|index| chosen[*index].floor < cells[*index].1).map(|index| {
            let next = chosen[index].floor + 1;
            (index, Suggested { floor: next, false_alarm: tail(index, next) })
        });
        let fits = |(index, next): &(usize, Suggested)| {
            let release = 1.0 - kept / (1.0 - chosen[*index].false_alarm) * (1.0 - next.false_alarm);
            next.false_alarm < 1.0 && release <= alarm
        };
        let step = |(index, next): &(usize, Suggested)| next.false_alarm - chosen[*index].false_alarm;
        match raised.filter(fits).min_by(|a, b| step(a).total_cmp(&step(b))) {
            Some((index, next)) => chosen[index] = next,
            None => return chosen,
        }
    }
}

/// The probability that a release misses at least one of these floors though nothing changed.
pub fn release_alarm(floors: &[Suggested]) -> f64 {
    1.0 - floors.iter().map(|each| 1.0 - each.false_alarm).product::<f64>()
}

/// The least drop of the rate that misses a floor with probability `power`: from `rate` to `rate` − drop. `None` where no drop does.
pub fn detectable_drop(rate: f64, floor: usize, n: usize, power: f64) -> Option<f64> {
    let seen = |drop: f64| below(floor, n, (rate - drop).max(0.0)) >= power;
    if !seen(rate) {
        return None;
    }
    let (mut low, mut high) = (0.0, rate);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if seen(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from 0 to 1, the same ones every time (Steele and Vigna's SplitMix64).
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        }

        fn count(&mut self, n: usize, rate: f64) -> usize {
            (0..n).filter(|_| self.roll() < rate).count()
        }
    }

    /// How many of so many releases of an unchanged model miss a floor that its runs suggested.
    fn simulated(sizes: &[usize], runs: usize, releases: usize) -> f64 {
        let mut dice = Dice(7);
        let failed = (0..releases).filter(|_| {
            let rates: Vec<f64> = sizes.iter().map(|_| dice.roll()).collect();
            let seen = sizes.iter().zip(&rates).map(|(n, rate)| {
                let counts: Vec<(usize, usize)> = (0..runs).map(|_| (dice.count(*n, *rate), *n)).collect();
                (spread(&counts).unwrap(), *n)
            });
            let cells: Vec<(Spread, usize)> = seen.collect();
            let floors = floors(&cells, FALSE_ALARM);
            let missed = |((n, rate), floor): ((&usize, &f64), &Suggested)| dice.count(*n, *rate) < floor.floor;
            sizes.iter().zip(&rates).zip(&floors).map(missed).filter(|missed| *missed).count() > 0
        });
        failed.count() as f64 / releases as f64
    }

    #[test]
    fn an_unchanged_model_fails_as_often_as_stated() {
        // The seed's four sets, 10,000 releases, from one run and from five.
        for runs in [1, 5] {
            let rate = simulated(&[86, 36, 24, 8], runs, 10_000);
            println!("{runs} runs: {:.2} % of 10,000 releases failed", rate * 100.0);
            assert!((0.04..=0.06).contains(&rate), "{runs} runs: {rate}");
        }
    }

    #[test]
    fn floors_by_hand() {
        // One cell that always passed: fewer than n again is what Jeffreys' spread gives.
        let cell = (spread(&[(20, 20)]).unwrap(), 20);
        let one = floors(&[cell], FALSE_ALARM);
        assert!(one[0].floor == 18 && one[0].false_alarm <= 0.05 && cell.0.below(19, 20) > 0.05, "{one:?}");
        assert_eq!(floors(&[], 0.05), []);
        assert_eq!(spread(&[]), None);
        assert_eq!(floors(&[(spread(&[(0, 8)]).unwrap(), 8)], 0.05)[0], Suggested { floor: 0, false_alarm: 0.0 });
        let many = floors(&vec![cell; 27], FALSE_ALARM);
        assert!(release_alarm(&many) <= 0.05 && release_alarm(&many) > 0.035, "{}", release_alarm(&many));
    }

    #[test]
    fn runs_that_differ_widen_the_spread() {
        let alike = spread(&[(50, 86), (52, 86), (49, 86)]).unwrap();
        let unlike = spread(&[(30, 86), (70, 86), (51, 86)]).unwrap();
        assert!((alike.a + alike.b - 259.0).abs() < 1e-9);
        assert!(unlike.a + unlike.b < 20.0, "{unlike:?}");
        assert!((unlike.mean() - alike.mean()).abs() < 0.01);
        assert!(spread(&[(1, 1), (0, 1)]).is_some() && spread(&[(8, 8), (8, 8)]).is_some());
    }

    #[test]
    fn what_a_floor_sees() {
        // At the rate found, the floor is missed with just that probability; a floor of none is never missed.
        let drop = detectable_drop(0.6, 44, 86, POWER).unwrap();
        assert!((below(44, 86, 0.6 - drop) - POWER).abs() < 1e-6, "{drop}");
        assert_eq!(detectable_drop(0.6, 0, 86, POWER), None);
        assert_eq!(detectable_drop(0.0, 1, 8, POWER), Some(0.0));
    }
}
