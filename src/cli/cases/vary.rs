//! `cases vary`: a set of byte variants beside their originals.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;

use super::{CaseFlags, keep, named, select_failure};
use crate::case::select::select;
use crate::case::vary::{Bytes, vary};
use crate::case::{Case, write};
use crate::cli::{Exit, Failure, output};

#[derive(Debug, Args)]
pub(in crate::cli) struct VaryFlags {
    #[command(flatten)]
    cases: CaseFlags,
    /// Only these: lf, crlf, cr, mixed, bom, no-final-newline, tabs [default: all]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = parse_bytes)]
    to: Vec<Bytes>,
    /// Name of the new set [default: SET-variants, or variants]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// File of the new set [default: stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long, requires = "out")]
    force: bool,
}

fn parse_bytes(name: &str) -> Result<Bytes, String> {
    let known = || Bytes::ALL.map(Bytes::name).join(", ");
    Bytes::named(name).ok_or_else(|| format!("there is no such variant; there are: {}", known()))
}

pub(super) fn main(flags: &VaryFlags) -> Result<Exit, Failure> {
    let sets = flags.cases.load()?;
    let selected = select(&sets, &flags.cases.selection()).map_err(select_failure)?;
    let name = flags.name.clone().unwrap_or_else(|| match selected.as_slice() {
        [one] => format!("{}-variants", one.set.name),
        _ => "variants".to_owned(),
    });
    named(&name)?;
    let wanted = if flags.to.is_empty() { Bytes::ALL.to_vec() } else { flags.to.clone() };
    let mut cases: Vec<Case> = Vec::new();
    let mut whys: BTreeMap<(Bytes, String), usize> = BTreeMap::new();
    let (mut originals, mut variants) = (0, 0);
    for case in selected.iter().flat_map(|chosen| chosen.cases.iter().copied()) {
        if cases.iter().any(|other| other.id == case.id) {
            return Err(Failure::usage(anyhow!("two of the sets have a case `{}`; choose one with --set", case.id)));
        }
        let mut mine = Vec::new();
        for bytes in &wanted {
            match vary(case, *bytes) {
                Ok(variant) => mine.push(variant),
                Err(why) => *whys.entry((*bytes, why)).or_default() += 1,
            }
        }
        if !mine.is_empty() {
            originals += 1;
            variants += mine.len();
            cases.push(case.clone());
            cases.extend(mine);
        }
    }
    for ((bytes, why), count) in &whys {
        output::message(&format!("not in {}: {count} (because {why})", bytes.name()));
    }
    if cases.is_empty() {
        return Err(Failure::new(Exit::NothingMatched, anyhow!("none of the chosen cases has such a variant")));
    }
    let about = "Cases and the same cases in other bytes: what those bytes cost, within a case.";
    keep(flags.out.as_deref(), flags.force, &write::set(&name, about, &BTreeMap::new(), &cases))?;
    output::message(&format!("{originals} cases and {variants} variants of them"));
    Ok(Exit::Passed)
}
