//! What people read, as snapshots: a small recorded run rendered by the built binary. After a wanted change:
//! `INSTA_UPDATE=always cargo test --test reports`, and review the difference.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::{Place, repository, stderr, stdout};

fn rendered(args: &[&str]) -> String {
    let place = Place::new();
    let run = repository().join("tests/data/run");
    let output = place.editgate().arg("report").arg(run).args(args).output().expect("ran");
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn terminal() {
    insta::assert_snapshot!(rendered(&[]));
}

#[test]
fn markdown() {
    insta::assert_snapshot!(rendered(&["--format", "md"]));
}
