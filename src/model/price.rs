//! What an answer costs, from a table that its user keeps: prices change, so none are built in.

use serde::{Deserialize, Serialize};

use crate::chat::Usage;

/// Dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// Input from the server's cache; the price of input where it is not given.
    #[serde(default)]
    pub cached: Option<f64>,
}

impl Price {
    /// Dollars, or `None` where the server did not count. A server that is silent on its cache is taken to have used none.
    pub fn of(&self, usage: Usage) -> Option<f64> {
        let (input, output) = (usage.input?, usage.output?);
        let cached = usage.cached.unwrap_or(0).min(input);
        let dollars = (input - cached) as f64 * self.input
            + cached as f64 * self.cached.unwrap_or(self.input)
            + output as f64 * self.output;
        Some(dollars / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_priced() {
        let price = Price { input: 2.0, output: 10.0, cached: Some(0.5) };
        let usage = |input, output, cached| Usage { input, output, cached, ..Usage::default() };
        assert_eq!(price.of(usage(Some(1_000_000), Some(100_000), Some(500_000))), Some(2.25));
        assert_eq!(price.of(usage(Some(1_000_000), Some(0), None)), Some(2.0));
        assert_eq!(price.of(usage(None, Some(5), None)), None);
    }
}
