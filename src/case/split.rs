//! Public and held-out cases: which, decides a hash, so that nobody can choose.

use sha2::{Digest, Sha256};

/// `public` cases may be tuned on; `held-out` ones are kept for judging what was tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    Public,
    HeldOut,
}

/// One case in so many is held out.
const HELD_OUT_OF: u64 = 5;

impl Split {
    pub const ALL: [Split; 2] = [Split::Public, Split::HeldOut];

    /// The split of a case: held out when the first eight bytes of the SHA-256 of its id, as a big-endian number, are
    /// divisible by five.
    pub fn of(id: &str) -> Split {
        let digest = Sha256::digest(id.as_bytes());
        let number = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        if number.is_multiple_of(HELD_OUT_OF) { Split::HeldOut } else { Split::Public }
    }

    pub fn name(self) -> &'static str {
        match self {
            Split::Public => "public",
            Split::HeldOut => "held-out",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_a_fifth_is_held_out_and_always_the_same() {
        let held = (0..1000).filter(|n| Split::of(&format!("case-{n}")) == Split::HeldOut).count();
        assert!((160..=240).contains(&held), "{held}");
        // A change of the rule would move cases between the splits in silence.
        assert_eq!(Split::of("swift-retry-delay-cap"), Split::ALL[SWIFT]);
    }

    const SWIFT: usize = 0;
}
