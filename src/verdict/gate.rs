//! The gate: counts against a floor.

/// Counts of a cell or run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub planned: usize,
    pub passed: usize,
    pub failed: usize,
    pub errors: usize,
    /// Planned attempts without a result: no row, or skipped because the run ended before them.
    pub missing: usize,
    /// Skipped because the tool or model cannot take the case: no statement about the model.
    pub unsupported: usize,
}

impl Counts {
    /// Planned attempts that a rate speaks of.
    pub fn measurable(self) -> usize {
        self.planned.saturating_sub(self.unsupported)
    }
}

/// How many errors may be, before a run is incomplete.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Allowance {
    Count(usize),
    /// A share of the planned attempts, 0 to 1.
    Rate(f64),
}

impl Allowance {
    /// Errors allowed among so many attempts.
    pub fn of(self, planned: usize) -> usize {
        match self {
            Allowance::Count(count) => count,
            Allowance::Rate(rate) => (rate * planned as f64).floor() as usize,
        }
    }

    /// `5` is a count, `0.1` a share.
    ///
    /// # Errors
    /// For anything else.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Ok(count) = text.parse() {
            return Ok(Allowance::Count(count));
        }
        match text.parse::<f64>() {
            Ok(rate) if (0.0..1.0).contains(&rate) => Ok(Allowance::Rate(rate)),
            _ => Err("a number of errors such as 5, or a share such as 0.1".to_owned()),
        }
    }
}

/// What the gate says of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// At or above its floor.
    Passed {
        floor: usize,
    },
    Below {
        floor: usize,
    },
    /// Below its floor, and errors could have decided it.
    Inconclusive {
        floor: usize,
        why: String,
    },
    /// There is no floor for it.
    Ungated,
    /// Too little was judged to compare it with anything.
    Incomplete {
        why: String,
    },
}

impl Judgement {
    /// The floor it was judged by, where there was one.
    pub fn floor(&self) -> Option<usize> {
        match self {
            Judgement::Passed { floor } | Judgement::Below { floor } | Judgement::Inconclusive { floor, .. } => {
                Some(*floor)
            }
            Judgement::Ungated | Judgement::Incomplete { .. } => None,
        }
    }
}

/// Judges a cell. Being incomplete goes before being below a floor: no pass rate is judged over a thin sample.
pub fn judge(counts: Counts, floor: Option<usize>, allowed_errors: usize) -> Judgement {
    if let Some(why) = incomplete(counts, allowed_errors) {
        return Judgement::Incomplete { why };
    }
    match floor {
        None => Judgement::Ungated,
        Some(floor) if counts.passed >= floor => Judgement::Passed { floor },
        Some(floor) if counts.passed + counts.errors >= floor => {
            let why = format!("{} passed, {floor} must, and {} errors could decide it", counts.passed, counts.errors);
            Judgement::Inconclusive { floor, why }
        }
        Some(floor) => Judgement::Below { floor },
    }
}

/// Why there is too little to judge, if so.
pub fn incomplete(counts: Counts, allowed_errors: usize) -> Option<String> {
    if counts.passed + counts.failed + counts.errors > counts.planned {
        return Some(format!("there are more results than the {} planned attempts", counts.planned));
    }
    if counts.missing > 0 {
        return Some(format!("{} of {} planned attempts have no result", counts.missing, counts.planned));
    }
    if counts.errors > allowed_errors {
        return Some(format!("{} errors, {allowed_errors} allowed", counts.errors));
    }
    if counts.passed + counts.failed == 0 && counts.measurable() > 0 {
        return Some("no attempt came to its end".to_owned());
    }
    None
}

/// Share of the planned attempts that passed, 0 to 1, without those that the tool or model cannot take; `None` when
/// there is nothing to measure.
pub fn rate(counts: Counts) -> Option<f64> {
    let of = counts.measurable();
    (of > 0).then(|| counts.passed as f64 / of as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_is_a_count_or_a_share() {
        assert_eq!(Allowance::parse("5"), Ok(Allowance::Count(5)));
        assert_eq!(Allowance::parse("0.1").map(|allowance| allowance.of(50)), Ok(5));
        assert_eq!(Allowance::parse("0"), Ok(Allowance::Count(0)));
        for bad in ["-1", "1.5", "all", ""] {
            assert!(Allowance::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn incomplete_goes_before_everything() {
        let counts = Counts { planned: 10, passed: 9, failed: 0, errors: 1, missing: 0, unsupported: 0 };
        assert_eq!(judge(counts, Some(5), 1), Judgement::Passed { floor: 5 });
        assert!(matches!(judge(counts, Some(5), 0), Judgement::Incomplete { .. }));
        assert!(matches!(judge(counts, Some(10), 1), Judgement::Inconclusive { floor: 10, .. }));
        assert_eq!(judge(Counts { failed: 1, passed: 8, ..counts }, Some(10), 1), Judgement::Below { floor: 10 });
        assert_eq!(judge(counts, None, 1), Judgement::Ungated);
        let cut = Counts { errors: 0, missing: 1, ..counts };
        assert!(matches!(judge(cut, None, 1), Judgement::Incomplete { .. }));
        let foreign = Counts { planned: 2, unsupported: 2, ..Counts::default() };
        assert_eq!((judge(foreign, None, 0), rate(foreign)), (Judgement::Ungated, None));
        assert_eq!(judge(foreign, Some(1), 0), Judgement::Below { floor: 1 });
        assert_eq!(rate(Counts { planned: 4, passed: 1, unsupported: 2, ..Counts::default() }), Some(0.5));
        let none = Counts { planned: 2, errors: 2, ..Counts::default() };
        assert!(matches!(judge(none, Some(0), 5), Judgement::Incomplete { .. }));
    }
}
