//! What must not get into a case: secrets, addresses of people, files under another licence. Errs on the side of leaving
//! out: a change more or less does not matter, a leaked key does.

use regex::bytes::{Regex, RegexSet};

/// The shapes of keys and tokens that are publicly documented by those who issue them, private keys, headers with
/// credentials, and values that are assigned to names such as `password`.
const SECRETS: [&str; 20] = [
    r"-----BEGIN [A-Z ]*PRIVATE KEY",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bgh[pousr]_[A-Za-z0-9]{20,}",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bglpat-[A-Za-z0-9_-]{16,}",
    r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    r"\bsk-[A-Za-z0-9_-]{20,}",
    r"\b[srp]k_(?:live|test)_[A-Za-z0-9]{8,}",
    r"\bSG\.[A-Za-z0-9_-]{16,}\.",
    r"\bAC[0-9a-f]{32}\b",
    r"\bGOCSPX-[A-Za-z0-9_-]{10,}",
    r"\bya29\.[A-Za-z0-9_-]{10,}",
    r"\b[0-9]{8,10}:[A-Za-z0-9_-]{35}\b",
    r"\bAIza[0-9A-Za-z_-]{30,}",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.",
    r"\b(?:npm|pypi|dop|shpat|hf)_[A-Za-z0-9]{20,}",
    r"(?i)\b(?:basic|bearer)\s+[A-Za-z0-9+/=_.-]{16,}",
    r#"(?i)token[a-z0-9_]*["']?\s{0,3}(?::|=>?)\s{0,3}["'][^\s"']{8,}["']"#,
    r"(?i)token[a-z0-9_]*\s{0,3}[:=]\s{0,3}[A-Za-z_.-]*[0-9][A-Za-z0-9_./+=-]{15,}",
    // Long runs of letters and digits: what keys of unknown makers look like, and digests, which nobody misses.
    r"\b[A-Za-z0-9+/_-]{44,}={0,2}|\b[0-9a-fA-F]{32,}\b",
];

/// The beginning of an assignment to a name that tells of a secret, and what follows it: a text in quotes, a bare value
/// with a digit, or a bare value that ends its line.
const NAMED: &str = r#"(?im)(?:password|passwd|passphrase|secret|api_?key|private_?key|access_?key|signing_?key)[a-z0-9_]*["']?\s{0,3}(?::|=>?)\s{0,3}"#;
const VALUES: [&str; 3] = [
    r#"["'][^"'\n]{6,}["']"#,
    r#"[^\s"'(){}<>\[\],;$]*[0-9][^\s"'(){}<>\[\],;$]{2,}"#,
    r#"[^\s"'(){}<>\[\],;$]{6,}\s*$"#,
];

/// An address of a person; those of reserved domains (RFC 2606) belong to nobody.
const ADDRESS: &str = r"(?i)\b[a-z0-9._%+-]+@([a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,})\b";
const NOBODY: [&str; 6] = ["example.com", "example.org", "example.net", "example", "test", "invalid"];

const LICENSE: &str = r"SPDX-License-Identifier:\s*([A-Za-z0-9.+() -]+)";

/// What the head of a file under other conditions says.
const CONDITIONS: &str = r"(?i)GNU (?:Lesser |Affero )?General Public License|Mozilla Public License|all rights reserved|\bconfidential\b|\bproprietary\b";

/// Looks for what must stay out.
#[derive(Debug)]
pub struct Secrets {
    secrets: RegexSet,
    address: Regex,
    license: Regex,
    conditions: Regex,
    /// SPDX identifiers that a file may state.
    accepted: Vec<String>,
}

impl Secrets {
    /// `accepted` are the licences that a file may state.
    ///
    /// # Errors
    /// When a pattern is none: nothing may pass for want of a filter.
    pub fn new(accepted: &[String]) -> Result<Self, regex::Error> {
        let assigned = VALUES.iter().map(|value| format!("{NAMED}{value}"));
        let patterns = SECRETS.iter().map(|pattern| (*pattern).to_owned()).chain(assigned);
        Ok(Secrets {
            secrets: RegexSet::new(patterns)?,
            address: Regex::new(ADDRESS)?,
            license: Regex::new(LICENSE)?,
            conditions: Regex::new(CONDITIONS)?,
            accepted: accepted.to_vec(),
        })
    }

    /// Whether the file holds anything of that kind.
    pub fn found(&self, bytes: &[u8]) -> bool {
        self.secrets.is_match(bytes) || self.someone(bytes) || self.other_license(bytes)
    }

    fn someone(&self, bytes: &[u8]) -> bool {
        let nobody = |domain: &[u8]| {
            let domain = String::from_utf8_lossy(domain).to_lowercase();
            NOBODY.iter().any(|end| domain == *end || domain.ends_with(&format!(".{end}")))
        };
        self.address.captures_iter(bytes).any(|found| !nobody(&found[1]))
    }

    fn other_license(&self, bytes: &[u8]) -> bool {
        let other = |stated: &[u8]| !accepts(&self.accepted, &String::from_utf8_lossy(stated));
        self.conditions.is_match(bytes) || self.license.captures_iter(bytes).any(|found| other(&found[1]))
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

/// Whether an SPDX expression leaves the choice of an accepted licence. One with parentheses is not taken apart.
pub fn accepts(accepted: &[String], expression: &str) -> bool {
    let one = |id: &str| accepted.iter().any(|each| each.eq_ignore_ascii_case(id.trim()));
    !expression.contains(['(', ')']) && expression.split(" OR ").any(|part| part.split(" AND ").all(one))
}

/// What several licence files say together: both of MIT and Apache-2.0 leave the choice, as is the custom; of others each
/// may cover a part.
pub fn together(ids: &[&str]) -> String {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    ids.join(if ids == ["Apache-2.0", "MIT"] { " OR " } else { " AND " })
}

/// The SPDX identifier of a licence by its title or the phrases of its text; `None` also where conditions are added to it.
pub fn license_of(text: &str) -> Option<&'static str> {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let has = |phrase: &str| flat.contains(phrase);
    let more = [
        "commons clause",
        "business source",
        "functional source",
        "non-commercial",
        "noncommercial",
        "for good, not evil",
        "all advertising materials",
        "additional restriction",
    ];
    if more.iter().any(|phrase| has(phrase)) {
        return None;
    }
    // Licences speak of one another; long ones are known by their titles, short ones by being short.
    let title: String = flat.chars().take(300).collect();
    let titled = |name: &str| title.contains(name);
    let short = |phrase: &str, most: usize| has(phrase) && flat.len() <= most;
    let versioned = |two: &'static str, three: &'static str| if titled("version 3") { three } else { two };
    if titled("affero") || titled("agpl") {
        Some("AGPL-3.0")
    } else if titled("gnu lesser general public license") || titled("gnu library general public license") {
        Some(versioned("LGPL-2.1", "LGPL-3.0"))
    } else if titled("gnu general public license") {
        Some(versioned("GPL-2.0", "GPL-3.0"))
    } else if titled("mozilla public license") {
        Some("MPL-2.0")
    } else if titled("apache license") && titled("version 2.0") {
        Some("Apache-2.0")
    } else if has("history of the software") && has("python software foundation license") {
        Some("PSF-2.0")
    } else if titled("boost software license") {
        Some("BSL-1.0")
    } else if titled("cc0 1.0 universal") {
        Some("CC0-1.0")
    } else if short("this is free and unencumbered software", 2_000) {
        Some("Unlicense")
    } else if short("permission is hereby granted, free of charge", 2_000) {
        Some("MIT")
    } else if short("redistribution and use in source and binary forms", 3_000) {
        Some(if has("neither the name") || has("endorse or promote") { "BSD-3-Clause" } else { "BSD-2-Clause" })
    } else if short("permission to use, copy, modify, and/or distribute this software", 1_500) {
        Some(if has("provided that the above copyright notice") { "ISC" } else { "0BSD" })
    } else if short("altered source versions must be plainly marked", 2_000) {
        Some("Zlib")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_finds_its_kind() {
        let secrets = Secrets::new(&["MIT".to_owned()]).unwrap();
        let made_up = [
            format!("-----BEGIN {} KEY-----", "OPENSSH PRIVATE"),
            "id = AKIAIOSFODNN7EXAMPLE".to_owned(),
            format!("token: ghp_{}", "a1".repeat(18)),
            "password = \"correct-horse-9\"".to_owned(),
            "DB_PASSWORD=hunter2-prod-99".to_owned(),
            "\"dbPassword\": \"hunter2hunter\"".to_owned(),
            "client_secret: abcdefgh".to_owned(),
            "//r.example/:_authToken=ab12cd34ef56ab12cd".to_owned(),
            format!("k: {}_live_{}", "sk", "a1".repeat(10)),
            "ada@realexample.com".to_owned(),
            "This program is under the GNU General Public License.".to_owned(),
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
        let mit = include_str!("../../LICENSE-MIT");
        assert_eq!(license_of(&format!("Commons Clause License Condition {mit}")), None);
        assert_eq!(license_of(&format!("GNU AFFERO General Public License {mit}")), Some("AGPL-3.0"));
        assert_eq!(license_of("Business Source License 1.1 ... Change License: Apache License, Version 2.0"), None);
        let python = format!(
            "A. HISTORY OF THE SOFTWARE {} PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2, compatible with the GNU General Public License",
            "x ".repeat(200)
        );
        assert_eq!(license_of(&python), Some("PSF-2.0"));
        assert_eq!(together(&["MIT", "Apache-2.0"]), "Apache-2.0 OR MIT");
        assert_eq!(together(&["MIT", "GPL-2.0"]), "GPL-2.0 AND MIT");
        let accepted = ["MIT".to_owned(), "Apache-2.0".to_owned()];
        assert!(accepts(&accepted, "GPL-2.0 OR mit") && accepts(&accepted, "MIT AND Apache-2.0"));
        assert!(!accepts(&accepted, "(MIT OR GPL-2.0) AND GPL-3.0"));
        assert!(!accepts(&accepted, "MIT AND GPL-2.0") && !accepts(&accepted, "GPL-3.0"));
    }
}
