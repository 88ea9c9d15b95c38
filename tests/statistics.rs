//! The statistics, held to the values that SciPy and statsmodels give (scripts/statistics.py).

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use editgate::verdict::binomial::{Spread, below};
use editgate::verdict::interval::{clopper_pearson, independent, wilson};
use editgate::verdict::paired::{holm, mid_p, sign_test};
use serde_json::Value;

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("{name} of {row}"))
}

fn count(value: &Value) -> usize {
    usize::try_from(value.as_u64().expect("a count")).expect("small")
}

fn pair(value: &Value) -> (f64, f64) {
    (value[0].as_f64().expect("low"), value[1].as_f64().expect("high"))
}

/// Equal to nine digits, or both next to nothing.
fn same(have: f64, want: f64, row: &Value) {
    assert!((have - want).abs() <= 1e-9 * want.abs().max(1.0), "{have} {want} {row}");
}

#[test]
fn two_hundred_inputs() {
    let table: Value = serde_json::from_str(include_str!("data/statistics.json")).expect("JSON");
    let rows = table["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 200);
    for row in rows {
        match row["what"].as_str().expect("a word") {
            "interval" => {
                let (passed, n) = (count(&row["passed"]), count(&row["n"]));
                for (have, want) in
                    [(wilson(passed, n), pair(&row["wilson"])), (clopper_pearson(passed, n), pair(&row["exact"]))]
                {
                    same(have.0, want.0, row);
                    same(have.1, want.1, row);
                }
            }
            "paired" => {
                let (lost, gained) = (count(&row["lost"]), count(&row["gained"]));
                same(sign_test(lost, gained), number(row, "p"), row);
                same(mid_p(lost, gained), number(row, "mid_p"), row);
            }
            "independent" => {
                let group = |name: &str| (count(&row[name][0]), count(&row[name][1]));
                let have = independent(group("first"), group("second"));
                same(have.low, number(row, "low"), row);
                same(have.high, number(row, "high"), row);
            }
            "holm" => {
                let p: Vec<f64> = row["p"].as_array().expect("p").iter().filter_map(Value::as_f64).collect();
                let adjusted = holm(&p);
                assert_eq!(adjusted.len(), p.len());
                for (have, want) in adjusted.iter().zip(row["adjusted"].as_array().expect("adjusted")) {
                    same(*have, want.as_f64().expect("a number"), row);
                }
            }
            "tail" => {
                let (k, n) = (count(&row["k"]), count(&row["n"]));
                same(below(k, n, number(row, "rate")), number(row, "binomial"), row);
                let spread = Spread { a: number(row, "a"), b: number(row, "b") };
                same(spread.below(k, n), number(row, "beta_binomial"), row);
            }
            other => panic!("{other}"),
        }
    }
}
