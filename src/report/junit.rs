//! `junit.xml`: a suite a cell, a test case a case. Its repeats are reruns: mixed ones are flaky, as Surefire and nextest say it.

use std::collections::BTreeMap;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestRerun, TestSuite};

use super::summary::{Summary, name_of};
use crate::record::Row;
use crate::score::Verdict;
use crate::score::class::meaning;
use crate::text::visible;

/// Characters of a description.
const MAX_TEXT: usize = 8_000;

/// Renders the file.
///
/// # Errors
/// When XML cannot hold it, which no text that is made inert can cause.
pub fn render(summary: &Summary<'_>, rows: &[Row]) -> Result<String, quick_junit::SerializeError> {
    let mut report = Report::new("editgate");
    for cell in summary.cells.iter().filter(|cell| !cell.part) {
        let mut suite = TestSuite::new(visible::inert(&cell.plan.title()));
        let mut cases: BTreeMap<usize, Vec<&Row>> = BTreeMap::new();
        let mut order: Vec<&str> = Vec::new();
        for row in rows.iter().filter(|row| row.cell_key() == cell.plan.key()) {
            let place = order.iter().position(|case| *case == row.case).unwrap_or_else(|| {
                order.push(&row.case);
                order.len() - 1
            });
            cases.entry(place).or_default().push(row);
        }
        for attempts in cases.values() {
            suite.add_test_case(case(attempts));
        }
        for (name, value) in [
            ("model", cell.plan.model.as_str()),
            ("tool", &cell.plan.tool),
            ("set", &cell.plan.set),
            ("prompt", &cell.plan.prompt),
            ("digest", &cell.plan.digest),
        ] {
            suite.add_property(Property::new(name, visible::inert(value)));
        }
        report.add_test_suite(suite);
    }
    Ok(without_skipped(&report.to_string()?))
}

/// The common schema (the Jenkins xUnit plugin's junit-10.xsd) knows no count of skipped cases on the outermost element.
fn without_skipped(xml: &str) -> String {
    let end = xml.find("<testsuites").and_then(|at| Some(at + xml[at..].find('>')?)).unwrap_or(0);
    let (head, rest) = xml.split_at(end);
    let Some((before, after)) = head.split_once(" skipped=\"") else {
        return xml.to_owned();
    };
    let after = after.split_once('"').map_or("", |(_, after)| after);
    format!("{before}{after}{rest}")
}

/// What a case came to: the verdict of most of its attempts, an error where there is no verdict at all.
fn case(attempts: &[&Row]) -> TestCase {
    let count = |verdict: Verdict| attempts.iter().filter(|row| row.verdict == verdict).count();
    let (passed, failed, errors) = (count(Verdict::Pass), count(Verdict::Fail), count(Verdict::Error));
    let main = if passed >= failed && passed > 0 {
        Verdict::Pass
    } else if failed > 0 {
        Verdict::Fail
    } else if errors > 0 {
        Verdict::Error
    } else {
        Verdict::Skipped
    };
    let first = attempts.iter().find(|row| row.verdict == main).copied().unwrap_or(attempts[0]);
    let mut status = match main {
        Verdict::Pass => TestCaseStatus::success(),
        Verdict::Skipped => {
            let mut skipped = TestCaseStatus::skipped();
            skipped.set_type(first.class.clone()).set_message(said(first));
            skipped
        }
        verdict => {
            let mut failed = TestCaseStatus::non_success(kind(verdict));
            failed.set_type(first.class.clone()).set_message(said(first)).set_description(described(first));
            failed
        }
    };
    for row in attempts.iter().filter(|row| !std::ptr::eq(**row, first)) {
        if matches!(row.verdict, Verdict::Fail | Verdict::Error) && main != Verdict::Skipped {
            let mut rerun = TestRerun::new(kind(row.verdict));
            rerun.set_type(row.class.clone()).set_message(said(row)).set_description(described(row));
            status.add_rerun(rerun);
        }
    }
    let mut case = TestCase::new(visible::inert(&first.case), status);
    case.set_classname(visible::inert(&format!("{}.{}", first.set, first.tool)));
    if let Some(ms) = first.elapsed_ms.or(first.model_ms) {
        case.set_time(Duration::from_millis(ms));
    }
    // Properties of test cases are not in the common schema; what a case prints is.
    let mut facts = vec![format!("class: {}", first.class), format!("steps: {}", first.steps())];
    if !first.tags.is_empty() {
        facts.push(format!("tags: {}", first.tags.join(" ")));
    }
    facts.extend(first.usage.total.map(|tokens| format!("tokens: {tokens}")));
    facts.extend(first.cost_usd.map(|cost| format!("cost_usd: {cost}")));
    if first.harm {
        facts.push("harm: true".to_owned());
    }
    case.set_system_out(visible::inert(&facts.join("\n")));
    case
}

fn kind(verdict: Verdict) -> NonSuccessKind {
    if verdict == Verdict::Error { NonSuccessKind::Error } else { NonSuccessKind::Failure }
}

fn said(row: &Row) -> String {
    let why = meaning(&row.class).unwrap_or_default();
    match &row.error {
        Some(error) => format!("{}: {why}: {}", row.class, visible::excerpt(error, 300)),
        None => format!("{}: {why}", row.class),
    }
}

fn described(row: &Row) -> String {
    let mut parts = vec![format!("steps: {}", row.steps())];
    if !row.diagnosis.is_empty() {
        parts.push(format!("diagnosis: {}", row.diagnosis.iter().map(name_of).collect::<Vec<_>>().join(", ")));
    }
    if let Some(detail) = &row.detail {
        parts.push(format!("task: {}", detail.task));
        parts.extend(detail.last_edit.iter().map(|edit| format!("last edit call: {edit}")));
        parts.extend(detail.tool_error.iter().map(|error| format!("last tool error: {error}")));
        if !detail.diff.is_empty() {
            parts.push(format!("from expected to actual:\n{}", detail.diff));
        }
    }
    let text = visible::inert(&parts.join("\n"));
    visible::str_prefix(&text, MAX_TEXT).to_owned()
}
