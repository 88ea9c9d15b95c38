//! What changed since an earlier run, and which approved cases fell: sections of the Markdown report and of the comment.

use super::flip::{Flip, p_words, points, reasons};
use super::markup::{cell_code, table, text};
use super::summary::{Summary, percent_number};
use super::versus::Part;
use crate::text::visible;

/// The section; nothing where there is no earlier run.
pub(super) fn render(summary: &Summary<'_>, most: usize) -> String {
    let mut out = fallen(summary, most);
    let Some(versus) = &summary.baseline else {
        return out;
    };
    out.push_str(&format!(
        "## Against {}\n\n**{}**\n\n| | passed then | failed then |\n|---|---|---|\n| passes now | {} | gained {} |\n| fails now | \
         **lost {}** | {} |\n\nExact McNemar {} (mid-p {:.3}); difference {}.\n\n",
        text(&versus.base),
        text(&versus.headline()),
        versus.both,
        versus.gained,
        versus.lost,
        versus.neither,
        p_words(versus.p),
        versus.mid_p,
        versus.difference_words()
    ));
    if versus.unpaired > 0 {
        out.push_str(&format!("{} attempts have a verdict in one of the runs only.\n\n", versus.unpaired));
    }
    if !versus.mismatches.is_empty() {
        out.push_str(&format!("The runs also differ in: {}.\n\n", text(&versus.mismatches.join("; "))));
    }
    out.push_str(&why(&versus.lost_cases));
    out.push_str(&flips("Lost", &versus.lost_cases, most));
    out.push_str(&flips("Gained", &versus.gained_cases, most));
    let moved: Vec<&Part> = versus.tags.iter().filter(|tag| tag.lost + tag.gained > 0).take(20).collect();
    if !moved.is_empty() {
        let rows: Vec<Vec<String>> = moved
            .into_iter()
            .map(|part| {
                vec![
                    text(&visible::excerpt(&part.name, 40)),
                    format!("{} → {} of {}", part.base, part.head, part.pairs),
                    part.lost.to_string(),
                    part.gained.to_string(),
                    points(part.difference, part.low, part.high),
                    p_words(part.p),
                ]
            })
            .collect();
        let heads = ["tag", "passed", "lost", "gained", "difference, 95 %", "p (one at a time)"];
        out.push_str(&format!("By tag, where it moved:\n\n{}\n", table(&heads, &rows)));
    }
    out
}

/// What the calls of the lost cases did otherwise.
fn why(lost: &[Flip]) -> String {
    if lost.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = reasons(lost)
        .into_iter()
        .take(20)
        .map(|(because, flips)| {
            let cases: Vec<String> = flips.iter().take(3).map(|flip| format!("{}/{}", flip.set, flip.case)).collect();
            let more = if flips.len() > 3 { format!(" and {} more", flips.len() - 3) } else { String::new() };
            let cases = format!("{}{more}", visible::excerpt(&cases.join(", "), 200));
            vec![text(because), flips.len().to_string(), text(&cases)]
        })
        .collect();
    format!("{}\n", table(&["what broke them", "cases", "which"], &rows))
}

fn flips(title: &str, flips: &[Flip], most: usize) -> String {
    if flips.is_empty() {
        return String::new();
    }
    let mut rows: Vec<Vec<String>> = flips
        .iter()
        .take(most)
        .map(|flip| {
            let repeat = if flip.repeat > 0 { format!(" (repeat {})", flip.repeat) } else { String::new() };
            vec![
                cell_code(&visible::excerpt(&format!("{}/{}{repeat}", flip.set, flip.case), 100)),
                text(&flip.tool),
                text(&visible::excerpt(&flip.model, 60)),
                text(&flip.was),
                text(&flip.is),
            ]
        })
        .collect();
    if flips.len() > most {
        rows.push(vec![format!("… {} more", flips.len() - most)]);
    }
    let heads = [&format!("{title}: {}", flips.len()), "tool", "model", "was", "is"];
    format!("{}\n", table(&heads, &rows))
}

fn fallen(summary: &Summary<'_>, most: usize) -> String {
    if summary.fallen.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = summary
        .fallen
        .iter()
        .take(most)
        .map(|each| vec![cell_code(&visible::excerpt(&each.title, 160)), format!("{} of {}", each.passed, each.judged)])
        .collect();
    format!("## Approved cases that no longer pass\n\n{}\n", table(&["case", "passed"], &rows))
}

/// The gap between cases that were tuned on and those held out; nothing where only one kind was run.
pub(super) fn gap(summary: &Summary<'_>) -> String {
    let Some(gap) = summary.split_gap() else {
        return String::new();
    };
    let words: Vec<String> = summary
        .splits
        .iter()
        .map(|(split, (passed, judged))| {
            let share = percent_number(*passed as f64 / (*judged).max(1) as f64);
            format!("{} {passed} of {judged} ({share} %)", split.name())
        })
        .collect();
    format!(
        "By split, of the judged: {}; held-out less public {}.\n\n",
        words.join(", "),
        points(gap.estimate, gap.low, gap.high)
    )
}

/// Cases that passed in some of their attempts, and what repeats would come to.
pub(super) fn flaky(summary: &Summary<'_>, most: usize) -> String {
    let Some((k, any, all)) = summary.repeated else {
        return String::new();
    };
    let means = format!(
        "pass@{k} {} %, pass^{k} {} % (means over the cases: at least one of {k} attempts passes, all of them do).\n\n",
        percent_number(any),
        percent_number(all)
    );
    let mut rows: Vec<Vec<String>> = summary
        .flaky
        .iter()
        .take(most)
        .map(|flaky| {
            let row = flaky.example;
            vec![
                cell_code(&visible::excerpt(&format!("{}/{}", row.set, row.case), 100)),
                text(&row.tool),
                text(&visible::excerpt(&row.model, 60)),
                cell_code(&visible::excerpt(&flaky.pattern, 60)),
            ]
        })
        .collect();
    if summary.flaky.len() > most {
        rows.push(vec![format!("… {} more", summary.flaky.len() - most)]);
    }
    let table = match rows.is_empty() {
        true => "No case passed in some of its attempts only.\n".to_owned(),
        false => table(&["case", "tool", "model", "attempts"], &rows),
    };
    format!("## Repeats\n\n{means}{table}\n")
}
