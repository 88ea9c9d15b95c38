//! What must not get into a case: secrets, addresses of people, files under another licence. Errs on the side of leaving
//! out: a change more or less does not matter, a leaked key does.

use regex::bytes::{Regex, RegexSet};

/// The shapes of keys and tokens that are publicly documented by those who issue them, private keys, and values that are
/// assigned to names such as `password`.
const SECRETS: [&str; 12] = [
    r"-----BEGIN [A-Z ]*PRIVATE KEY",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bgh[pousr]_[A-Za-z0-9]{20,}",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bglpat-[A-Za-z0-9_-]{16,}",
    r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    r"\bsk-[A-Za-z0-9_-]{20,}",
    r"\bAIza[0-9A-Za-z_-]{30,}",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.",
    r"\b(?:npm|pypi|dop|shpat|hf)_[A-Za-z0-9]{20,}",
    r"(?i)\b(?:password|passwd|secret|api_?key|auth_?token|access_?token)\b\W{1,6}[A-Za-z0-9+/=_.!-]{8,}",
    // Long runs of letters, digits and both cases: what keys of unknown makers look like.
    r"\b[A-Za-z0-9+/_-]{44,}={0,2}",
];

/// An address of a person; those of reserved domains (RFC 2606) belong to nobody.
const ADDRESS: &str = r"(?i)\b[a-z0-9._%+-]+@([a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,})\b";
const NOBODY: [&str; 6] = ["example.com", "example.org", "example.net", ".example", ".test", ".invalid"];

const LICENSE: &str = r"SPDX-License-Identifier:\s*([A-Za-z0-9.+() -]+)";

/// Looks for what must stay out.
#[derive(Debug)]
pub struct Secrets {
    secrets: RegexSet,
    address: Option<Regex>,
    license: Option<Regex>,
    /// SPDX identifiers that a file may state.
    accepted: Vec<String>,
}

impl Secrets {
    pub fn new(accepted: &[String]) -> Self {
        Secrets {
            secrets: RegexSet::new(SECRETS).unwrap_or_else(|_| RegexSet::empty()),
            address: Regex::new(ADDRESS).ok(),
            license: Regex::new(LICENSE).ok(),
            accepted: accepted.to_vec(),
        }
    }

    /// Whether the file holds anything of that kind.
    pub fn found(&self, bytes: &[u8]) -> bool {
        self.secrets.is_match(bytes) || self.someone(bytes) || self.other_license(bytes)
    }

    fn someone(&self, bytes: &[u8]) -> bool {
        let nobody = |domain: &[u8]| {
            let domain = String::from_utf8_lossy(domain).to_lowercase();
            NOBODY.iter().any(|end| domain.ends_with(end))
        };
        self.address.iter().any(|address| address.captures_iter(bytes).any(|found| !nobody(&found[1])))
    }

    fn other_license(&self, bytes: &[u8]) -> bool {
        self.license.iter().any(|license| {
            license.captures_iter(bytes).any(|found| !accepts(&self.accepted, &String::from_utf8_lossy(&found[1])))
        })
    }
}

/// Licences under which a text may be copied with its notice and little else.
pub const PERMISSIVE: [&str; 11] = [
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Unlicense",
    "CC0-1.0",
    "Zlib",
    "0BSD",
    "BSL-1.0",
    "PSF-2.0",
];

/// Whether an SPDX expression leaves the choice of an accepted licence.
pub fn accepts(accepted: &[String], expression: &str) -> bool {
    let one = |id: &str| accepted.iter().any(|each| each.eq_ignore_ascii_case(id.trim().trim_matches(['(', ')'])));
    expression.split(" OR ").any(|part| part.split(" AND ").all(|id| one(id.split(" WITH ").next().unwrap_or(id))))
}

/// What several licence files say together: both of MIT and Apache-2.0 leave the choice, as is the custom; of others each
/// may cover a part.
pub fn together(ids: &[&str]) -> String {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    ids.join(if ids == ["Apache-2.0", "MIT"] { " OR " } else { " AND " })
}

/// The SPDX identifier of a licence by the phrases of its text.
pub fn license_of(text: &str) -> Option<&'static str> {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let has = |phrase: &str| flat.contains(phrase);
    // Other licences speak of these, and these are known by their titles.
    let title: String = flat.chars().take(300).collect();
    let gnu = |name: &'static str, two: &'static str, three: &'static str| {
        title.contains(name).then_some(if title.contains("version 3") { three } else { two })
    };
    gnu("gnu affero general public license", "AGPL-3.0", "AGPL-3.0")
        .or_else(|| gnu("gnu lesser general public license", "LGPL-2.1", "LGPL-3.0"))
        .or_else(|| gnu("gnu general public license", "GPL-2.0", "GPL-3.0"))
        .or_else(|| has("psf license agreement").then_some("PSF-2.0"))
        .or_else(|| has("mozilla public license").then_some("MPL-2.0"))
        .or_else(|| (has("apache license") && has("version 2.0")).then_some("Apache-2.0"))
        .or_else(|| has("permission is hereby granted, free of charge").then_some("MIT"))
        .or_else(|| {
            has("redistribution and use in source and binary forms").then_some(
                if has("neither the name") || has("endorse or promote") { "BSD-3-Clause" } else { "BSD-2-Clause" },
            )
        })
        .or_else(|| {
            has("permission to use, copy, modify, and/or distribute this software")
                .then_some(if has("provided that the above copyright notice") { "ISC" } else { "0BSD" })
        })
        .or_else(|| has("this is free and unencumbered software").then_some("Unlicense"))
        .or_else(|| has("cc0 1.0 universal").then_some("CC0-1.0"))
        .or_else(|| has("boost software license").then_some("BSL-1.0"))
        .or_else(|| has("altered source versions must be plainly marked").then_some("Zlib"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_finds_its_kind() {
        assert!(RegexSet::new(SECRETS).is_ok() && Regex::new(ADDRESS).is_ok() && Regex::new(LICENSE).is_ok());
        let secrets = Secrets::new(&["MIT".to_owned()]);
        let made_up = [
            format!("-----BEGIN {} KEY-----", "OPENSSH PRIVATE"),
            "id = AKIAIOSFODNN7EXAMPLE".to_owned(),
            format!("token: ghp_{}", "a1".repeat(18)),
            "password = \"correct-horse-9\"".to_owned(),
            format!("key = {}", "Ab3".repeat(16)),
            "by ada@lovelace.org".to_owned(),
            "// SPDX-License-Identifier: GPL-2.0-only".to_owned(),
        ];
        for text in &made_up {
            assert!(secrets.found(text.as_bytes()), "{text}");
        }
        for text in [
            "let password = prompt();",
            "mail to a@example.com",
            "// SPDX-License-Identifier: Apache-2.0 OR MIT",
            "fn a() {}",
        ] {
            assert!(!secrets.found(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn licences_are_known_by_their_words() {
        assert_eq!(license_of(include_str!("../../LICENSE-MIT")), Some("MIT"));
        assert_eq!(license_of(include_str!("../../LICENSE-APACHE")), Some("Apache-2.0"));
        assert_eq!(license_of("GNU GENERAL PUBLIC LICENSE\n Version 3, 29 June 2007"), Some("GPL-3.0"));
        assert_eq!(license_of("All rights reserved."), None);
        let python = format!(
            "A. HISTORY {} PSF LICENSE AGREEMENT, compatible with the GNU General Public License",
            "x ".repeat(200)
        );
        assert_eq!(license_of(&python), Some("PSF-2.0"));
        assert_eq!(together(&["MIT", "Apache-2.0"]), "Apache-2.0 OR MIT");
        assert_eq!(together(&["MIT", "GPL-2.0"]), "GPL-2.0 AND MIT");
        let accepted = ["MIT".to_owned(), "Apache-2.0".to_owned()];
        assert!(accepts(&accepted, "GPL-2.0 OR mit") && accepts(&accepted, "MIT AND Apache-2.0"));
        assert!(!accepts(&accepted, "MIT AND GPL-2.0") && !accepts(&accepted, "GPL-3.0"));
    }
}
